# A program that stands in for tacho, to see how the server deals with a
# reader that misbehaves.
#
# my $node = stand_in_cluster('name');
# behave($node, q{answer([ 'a metric', 'its value' ])});
#
# The code given to behave() runs in each `tacho query` from then on. The
# arguments are in @ARGV, $program is the real program. answer() prints rows of
# (metric, value) and the end. note() writes a file for wait_for_file().
# Everything else but `query` is passed to the real program, so that the
# server records as usual; with writer => 0 it fails.
package TachoStandIn;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);

our @EXPORT_OK = qw(behave has_file stand_in_cluster wait_for_file);

sub stand_in_cluster
{
	my ($name, %opt) = @_;
	my $program = $ENV{TACHO_PROGRAM}
	  or die "TACHO_PROGRAM must name the tacho program";
	my $node = tacho_cluster($name, %opt, start => 0);
	my $script = directory($node) . '/tacho';
	my $other = $opt{writer} // 1 ? "exec '$program', \@ARGV" : 'exit 1';

	mkdir directory($node) or die "mkdir: $!";
	write_file($script, <<"END");
#!$^X
our \$program = '$program';
our \$dir = '@{[directory($node)]}';
if (\$ARGV[0] ne 'query') { $other }

sub answer
{
	print "metric\\tvalue\\n";
	print join("\\t", \@\$_), "\\n" for \@_;
	print "\\\\.\\n";
}

sub note
{
	my (\$name, \$content) = \@_;
	open my \$fh, '>', "\$dir/\$name" or die "open: \$!";
	print \$fh "\$content\\n";
	close \$fh;
}

\$| = 1;
do "\$dir/behaviour.pl";
die \$@ if \$@;
END
	chmod 0755, $script or die "chmod: $!";
	$node->append_conf('postgresql.conf', "tacho.program = '$script'");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
	return $node;
}

sub behave
{
	my ($node, $code) = @_;

	write_file(directory($node) . '/behaviour.pl', "$code;\n1;\n");
	return;
}

# True if the stand-in has written a file.
sub has_file
{
	my ($node, $name) = @_;
	return -s directory($node) . "/$name";
}

# Waits until the stand-in has written a file into $dir; returns its content.
sub wait_for_file
{
	my ($node, $name) = @_;
	my $path = directory($node) . "/$name";

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $content = -s $path ? slurp_file($path) : '';

		if ($content =~ /\n\z/)
		{
			unlink $path;
			chomp $content;
			return $content;
		}
		select(undef, undef, undef, 0.1);
	}
	die "the stand-in did not write \"$name\"";
}

sub directory
{
	my ($node) = @_;
	return $node->basedir . '/standin';
}

sub write_file
{
	my ($path, $content) = @_;

	open my $fh, '>:raw', "$path.new" or die "open $path: $!";
	print $fh $content;
	close $fh or die "close $path: $!";
	rename "$path.new", $path or die "rename: $!";
	return;
}

1;
