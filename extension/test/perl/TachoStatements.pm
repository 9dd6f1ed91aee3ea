# Helpers of the TAP tests of statements.
package TachoStatements;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoPoll;
use Test::More;

our @EXPORT_OK = qw(statements_cluster pgbench_script run_pgbench);

# A started cluster whose statements are counted; nothing is recorded, so that
# only the test itself executes statements. Options: preload => libraries,
# conf => lines, extension => 0, start => 0.
sub statements_cluster
{
	my ($name, %opt) = @_;
	my $preload = $opt{preload} // 'tacho';
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = '$preload'
tacho.program = '/nonexistent'
autovacuum = off
jit = off
});
	$node->append_conf('postgresql.conf', $opt{conf}) if $opt{conf};
	return $node if defined $opt{start} && !$opt{start};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION tacho')
	  unless defined $opt{extension} && !$opt{extension};
	return $node;
}

# Writes a pgbench script and returns its path.
sub pgbench_script
{
	my ($node, $name, $text) = @_;
	my $path = $node->basedir . "/$name.sql";

	append_to_file($path, $text);
	return $path;
}

# Runs pgbench with the script; returns the number of transactions done, dies
# when one failed.
sub run_pgbench
{
	my ($node, $script, @options) = @_;
	my ($out, $err) = run_command(
		[
			'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f',
			$script, @options, 'postgres'
		]);

	die "pgbench failed: $err" if $err =~ /aborted|error:/;
	$out =~ m{transactions actually processed: (\d+)} or die "pgbench: $out $err";
	return $1;
}

1;
