# Reads the list headers of catalog/ (catalog/README.md has their grammar).
package Catalog;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);

our @EXPORT_OK = qw(declarations described_dimensions dimensions);

# The declarations NAME(a, b, "c") of a list header, as [NAME, a, b, c].
sub declarations
{
	my ($header) = @_;
	my $path = dirname(__FILE__) . "/../catalog/$header";
	open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n";
	my $text = do { local $/; <$in> } =~ s{("(?:[^"\\]|\\.)*")|/\*.*?\*/}{$1 // ''}gser;
	return map {
		/^(\w+)\((.*)\)$/ or die "$header: not understood: $_\n";
		my ($kind, $rest, @fields) = ($1, $2);
		push @fields, defined $1 ? $1 =~ s/\\(.)/$1/gr : $2
			while $rest =~ /\G\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]+?))\s*(?:,|$)/g;
		[ $kind, @fields ] } grep { /\S/ } split /\n/, $text;
}

# Name and description of each dimension: the columns of samples, then the derived ones.
sub described_dimensions
{
	my @columns = grep { $_->[0] eq 'COLUMN' && $_->[6] eq 'DIM' } declarations('samples.h');
	return ((map { [ @$_[3, 7] ] } @columns), map { [ @$_[1, 2] ] } declarations('derived.h'));
}

# Names of the dimensions.
sub dimensions { return map { $_->[0] } described_dimensions() }

1;
