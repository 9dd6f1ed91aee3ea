# Reads tacho.status(), for tests of the sampler.
package TachoStatus;

use strict;
use warnings;
use Exporter 'import';
use Test::More;

our @EXPORT_OK = qw(metric wait_for_metric wait_until_written);

# One metric; empty when it is null.
sub metric
{
	my ($node, $name) = @_;
	return $node->safe_psql('postgres',
		"SELECT value FROM tacho.status() WHERE metric = '$name'");
}

# Waits until a condition on "value" holds for a metric.
sub wait_for_metric
{
	my ($node, $name, $condition) = @_;
	return $node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM tacho.status() WHERE metric = '$name' AND ($condition)"
	);
}

# Waits until all frames made so far have been written.
sub wait_until_written
{
	my ($node) = @_;
	my $made = metric($node, 'frames_made');
	return wait_for_metric($node, 'frames_written', "value::bigint >= $made");
}

1;
