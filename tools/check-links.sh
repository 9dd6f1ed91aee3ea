#!/usr/bin/env bash
# usage: tools/check-links.sh
#
# Prints each link of a tracked Markdown file to a file or a heading that does not exist. Prints
# each page below docs that docs/SUMMARY.md does not have. Prints each block of such a page that
# has no language (t/252_manual.pl runs sh, console and sql). Fails if it has printed a line.
# Addresses of other hosts are not tried.
set -euo pipefail

cd "$(dirname "$0")/.."
[ $# = 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
git ls-files '*.md' | perl -e '
	use strict; use warnings; use open qw(:std :utf8); use File::Basename; use File::Spec;
	my (%headings, @pages, $bad);
	# the text without code, and the anchors of headings as GitHub makes them
	sub text { my ($file) = @_; open my $in, "<", $file or die "$file: $!"; local $/; my $text = <$in>;
		$text =~ s/^```.*?^```//gms; return $text }
	sub anchors { my ($file) = @_; return $headings{$file} //= do { my (%seen, %anchors);
		for (text($file) =~ /^#+ +(.*?) *$/mg) { my $name = lc; $name =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
			$name =~ s/[^\w\- ]//g; $name =~ tr/ /-/; my $n = $seen{$name}++;
			$anchors{$n ? "$name-$n" : $name} = 1 }
		\%anchors } }
	while (my $file = <STDIN>) { chomp $file; push @pages, $file;
		(my $text = text($file)) =~ s/`[^`]*`//g;
		while ($text =~ /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|\bsrc(?:set)?="([^"]+)"/g) {
			my $link = $1 // $2; next if $link =~ /^[a-z]+:/i;
			my ($path, $anchor) = split /#/, $link, 2;
			my $target = $path eq "" ? $file : File::Spec->canonpath(dirname($file) . "/$path");
			1 while $target =~ s{(^|/)(?!\.\.)[^/]+/\.\.(/|$)}{$1};
			$target =~ s{^\./}{}; $target =~ s{/$}{};
			if (!-e $target) { $bad++; print "$file: $link: no such file\n" }
			elsif (defined $anchor && $target =~ /\.md$/ && !anchors($target)->{$anchor}) {
				$bad++; print "$file: $link: no such heading\n" } } }
	# the manual: pages that it lists, and folders whose pages it takes
	my $summary = do { open my $in, "<", "docs/SUMMARY.md" or die $!; local $/; <$in> };
	my %listed = map { $_ => 1 } $summary =~ /\]\(([^)]+)\)/g;
	my %folder = map { $_ => 1 } $summary =~ /^<!-- pages of (\S+) -->$/mg;
	foreach my $page (map { s{^docs/}{}r } grep { m{^docs/} } @pages) {
		my ($n, $open) = (0, 0);
		foreach my $line (split /\n/, do { open my $in, "<", "docs/$page" or die $!; local $/; <$in> }) {
			$n++; next unless $line =~ /^ *```(\w*)$/;
			if (!$open and $1 eq "") { $bad++; print "docs/$page:$n: a block without a language\n" }
			$open = !$open }
		next if $page eq "SUMMARY.md" or $listed{$page} or $folder{ dirname($page) };
		$bad++; print "docs/$page: not in docs/SUMMARY.md\n" }
	exit($bad ? 1 : 0)'
