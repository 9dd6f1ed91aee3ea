#!/usr/bin/env bash
# usage: tools/manual.sh
#
# Builds the manual in build/manual/book: the pages that docs/SUMMARY.md lists, with mdBook, and
# checks each link in the HTML. "<!-- pages of DIR -->" in SUMMARY.md stands for the pages of a
# directory that SUMMARY.md does not list itself. Pages keep their paths, so their links stay
# valid; files that a page links to are copied beside it.
#
# MDBOOK names the program; otherwise mdbook in PATH is taken, else cargo installs the version
# below into build/mdbook once, in three minutes.
set -euo pipefail

version=0.5.4
cd "$(dirname "$0")/.."
[ $# = 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

mdbook=${MDBOOK:-$(command -v mdbook || echo build/mdbook/bin/mdbook)}
if ! command -v "$mdbook" >/dev/null; then
	tools/prereq.sh build
	echo "manual: cargo installs mdbook $version into build/mdbook"
	PATH=$PATH:$HOME/.cargo/bin cargo install mdbook --version "$version" --locked --quiet \
		--no-default-features --features search --root build/mdbook
fi

rm -rf build/manual
mkdir -p build/manual/src
cp docs/book.toml docs/manual.css build/manual
# SUMMARY.md with paths from the root of the source; the pages; the files that they link to
perl -e '
	use strict; use warnings; use open qw(:std :utf8);
	use File::Basename qw(dirname); use File::Copy qw(copy); use File::Path qw(make_path);
	my $to = "build/manual/src";
	sub content { my ($file) = @_; open my $in, "<", $file or die "$file: $!\n"; local $/; return scalar <$in> }
	sub write_to { my ($file, $text) = @_; make_path(dirname("$to/$file"));
		open my $out, ">", "$to/$file" or die "$file: $!\n"; print $out $text; close $out or die "$file: $!\n" }
	sub path { my ($from, $link) = @_; my $path = "$from/$link";
		1 while $path =~ s{(^|/)(?!\.\.)[^/]+/\.\.(/|$)}{$1} || $path =~ s{(^|/)\./}{$1}; return $path =~ s{/$}{}r }
	sub title { my ($file) = @_; my ($title) = content($file) =~ /^##? (.+)$/m or die "$file has no title\n"; return $title =~ s/[\[\]]//gr }

	my $summary = content("docs/SUMMARY.md") =~ s/\]\(([^)]+)\)/"](" . path("docs", $1) . ")"/ger;
	my %listed = map { $_ => 1 } $summary =~ /\]\(([^)]+)\)/g;
	$summary =~ s{^<!-- pages of (\S+) -->$}{ my $folder = path("docs", $1);
		join "\n", map { "  - [" . title($_) . "]($_)" } grep { !$listed{$_}++ } sort glob("$folder/*.md") }gem;
	write_to("SUMMARY.md", $summary);

	my %copied;
	foreach my $page (sort keys %listed) {
		my $text = content($page);
		(my $prose = $text) =~ s/^```.*?^```//gms;
		while ($prose =~ /\]\(\s*<?([^)\s>#]+)[^)]*\)|\bsrc(?:set)?="([^"]+)"/g) {
			my $link = $1 // $2; next if $link =~ /^[a-z]+:/i;
			my $file = path(dirname($page) eq "." ? "" : dirname($page), $link) =~ s{^/}{}r;
			next if $listed{$file} or $copied{$file}++ or !-f $file;
			make_path(dirname("$to/$file")); copy($file, "$to/$file") or die "$file: $!\n";
		}
		# mdBook makes index.html of a README.md, and shows SUMMARY.md at the side of every page
		$text =~ s{(\]\((?:[^)\s:]*/)?)README\.md(?=[#)])}{$1index.html}g;
		write_to($page, $text =~ s{\[([^]]*)\]\(docs/SUMMARY\.md\)}{$1}gr);
	}'
"$mdbook" build build/manual

# each link of each page: the file, and the element with that id
find build/manual/book -name '*.html' -print0 | perl -0 -e '
	use strict; use warnings; use open qw(:std :utf8); use File::Basename qw(dirname);
	my (%ids, $bad, $links); my @pages = map { s/\0$//r } <STDIN>;
	sub content { my ($file) = @_; open my $in, "<", $file or die "$file: $!\n"; local $/; return scalar <$in> }
	sub ids { my ($file) = @_; return $ids{$file} //= { map { $_ => 1 } content($file) =~ /\bid="([^"]+)"/g } }
	foreach my $page (@pages) {
		next if $page =~ m{/(print|toc|404)\.html$};
		my ($main) = content($page) =~ m{<main>(.*)</main>}s or next;
		while ($main =~ /\b(?:href|src|srcset)="([^"]*)"/g) {
			my $link = $1; next if $link =~ /^[a-z]+:/i; $links++;
			my ($path, $id) = split /#/, $link, 2;
			my $target = $path eq "" ? $page : dirname($page) . "/$path";
			if (!-e $target) { $bad++; print "$page: $link: no such file\n" }
			elsif (defined $id and $id ne "" and $target =~ /\.html$/ and !ids($target)->{$id}) { $bad++; print "$page: $link: no such heading\n" }
		}
	}
	printf "manual: %d pages, %d links, %d of them broken: build/manual/book/index.html\n", scalar @pages, $links, $bad // 0;
	exit($bad ? 1 : 0)'
