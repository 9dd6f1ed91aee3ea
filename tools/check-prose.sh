#!/usr/bin/env bash
# usage: tools/check-prose.sh [-u | FOLDER]
#
# Counts sentences with a marker of prose that a reader has to read twice: openings
# such as "What …" or "Of …", "those of", "so many", "is told", "of which". A comment
# also counts if it begins with a pronoun ("Its end."), with an index ("By key: the sum.")
# or is a bare unit ("µs.") or example (`41 s`): it does not name its noun. It reads
# comments of all languages and the text of Markdown pages. The markers are a smoke
# detector; CONTRIBUTING.md has the rules.
#
# Without arguments it fails when a folder has more than tools/prose.txt allows.
#   -u      writes the counts that have become smaller to tools/prose.txt
#   FOLDER  prints the sentences of a folder ("docs" is all Markdown)
#
# tools/prose.txt has a line "COUNT FOLDER" for each folder. A line "keep WORDS" lets
# every sentence pass that contains WORDS: a marker that is right there.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
-u | '') ;;
-*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac

# prints FOLDER<tab>FILE<tab>SENTENCE for each sentence with a marker
marked() {
	git ls-files --cached --others --exclude-standard -- '*.rs' '*.c' '*.h' '*.ts' '*.svelte' '*.py' '*.sh' '*.sql' '*.pl' '*.pm' '*.toml' '*.md' |
		grep -vE '^(extension/test/expected|page/node_modules|CHANGELOG)' | perl -e '
		use strict; use warnings; use open qw(:std :utf8);
		my @marker = (
			qr/^(What|Of|Who|Where|Whose|How many|So many|Which)\b(?!.*\?$)/,
			qr/\b(is|are|was|were|be) (told|said|asked|looked)\b/i,
			qr/\b(those|that) of\b/i, qr/\bso (many|much)\b/i, qr/\bof (which|whom)\b/i,
			qr/\banew\b/i, qr/\bthe most\b.*\bthe\b/i, qr/\bnobody\b/i, qr/\b(may be|is to be) had\b/i);
		my @nameless = (qr/^(Its?|Their|Them|They|(Those|These) (are|have|that|with))\b/, qr/^By [^.:]{1,60}([:.] |\W*$)/, qr/^([`"][^`"]+[`"](, )?)+\W*$/, qr/^(In )?\d*\s*(ns|us|µs|ms)\W*$/);
		my %line = (rs => "//[/!]?", ts => "(?://|/?\\*+)", svelte => "(?://|/?\\*+)", sql => "--");
		open my $list, "<", "tools/prose.txt" or die "tools/prose.txt: $!";
		my @keep = map { /^keep (.+)/ ? quotemeta $1 : () } <$list>;
		while (my $file = <STDIN>) {
			chomp $file;
			my ($kind) = $file =~ /\.(\w+)$/;
			open my $in, "<", $file or next;
			my $text = do { local $/; <$in> } // "";
			if ($kind eq "c" or $kind eq "h") { $text = join "\n\n\f\n\n", $text =~ m{/\*(.*?)\*/}gs; $text =~ s/^[ \t]*\*?[ \t]?//mg }
			elsif ($kind ne "md") {
				my $mark = $line{$kind} // "#";
				$text = join "\n", map { m{^\s*$mark\s?(.*)$} ? $1 : "\n\f\n" } split /\n/, $text;
			}
			$text =~ s/(?<!\n)\n(?!\n)/ /g;
			my ($folder) = $kind eq "md" ? "docs" : $file =~ m{^([^/]+)/} ? $1 : "top";
			for my $comment (split /\f/, $text) {
				$comment =~ s/^\s+//;
				my $begin = $kind ne "md" ? $comment =~ s{\s*\*/\s*$}{}r : "";
				for my $sentence (split /(?<=[.!?:])\s+|\n\s*\n/, $comment) {
					$sentence =~ s/^\s+|\s+$//g;
					my $is_nameless = grep { $begin =~ $_ } @nameless;
					$begin = "";
					my $is_short = 4 > (() = $sentence =~ /\S+/g);
					next if grep { $sentence =~ $_ } @keep or !$is_nameless && $is_short;
					print join("\t", $folder, $file, $sentence), "\n" if $is_nameless or grep { $sentence =~ $_ } @marker;
				}
			}
		}'
}

if [ -n "${1:-}" ] && [ "$1" != -u ]; then
	marked | awk -F '\t' -v folder="$1" '$1 == folder { print $2 ": " $3 }'
	exit
fi

counts=$(marked | cut -f 1 | sort | uniq -c)
if [ "${1:-}" = -u ]; then
	new=$(awk 'NR == FNR { now[$2] = $1; next }
		/^[0-9]/ { n = now[$2] + 0; print (n < $1 ? n : $1), $2; next } { print }' <(echo "$counts") tools/prose.txt)
	printf '%s\n' "$new" >tools/prose.txt
	exit
fi
awk 'NR == FNR { if (/^[0-9]/) allowed[$2] = $1; next }
	$1 > allowed[$2] { printf "%s: %d sentences with a marker, at most %d: tools/check-prose.sh %s\n", $2, $1, allowed[$2], $2; bad = 1 }
	END { exit bad }' tools/prose.txt <(echo "$counts") >&2
