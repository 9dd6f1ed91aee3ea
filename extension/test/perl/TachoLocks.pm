# Helpers of the tests of locks: named sessions, and pairs of waiter and blocker.
package TachoLocks;

use strict;
use warnings;
use Exporter 'import';
use TachoTest qw(at server_ms tacho_session wait_for_ticks);
use Test::More;

our @EXPORT_OK = qw(blocked_pairs session settle wait_until_locked);

# A session whose application_name is $name.
sub session
{
	my ($node, $name) = @_;
	return tacho_session($node, app => $name)->run('SELECT 1');
}

# Waits until all these sessions wait for locks.
sub wait_until_locked
{
	my ($node, @names) = @_;
	my $list = join ',', map { "'$_'" } @names;
	my $count = @names;

	$node->poll_query_until('postgres',
		"SELECT count(*) = $count FROM pg_stat_activity
		 WHERE application_name IN ($list) AND wait_event_type = 'Lock'")
	  or die "@names: not all of them wait for a lock";
}

# Lets some ticks pass in which nothing changes. Returns the moment before.
sub settle
{
	my ($node) = @_;
	my $since = server_ms($node) + 300;

	wait_for_ticks($node, 5, $since);
	return $since;
}

# "waiter<blocker" for each blocked session of the newest tick since a moment,
# by application names, sorted. A blocker that is not counted is in brackets.
sub blocked_pairs
{
	my ($node, $since) = @_;
	my $pairs = $node->safe_psql('postgres', qq{
		WITH s AS MATERIALIZED (
		  SELECT * FROM tacho.samples(since => @{[at($since)]}, scope => 'all', n => null)),
		newest AS (SELECT * FROM s WHERE tick = (SELECT max(tick) FROM s))
		SELECT w.application || '<' || CASE b.weight_ms WHEN 0
		         THEN '[' || b.application || ']' ELSE b.application END
		FROM newest w JOIN newest b ON b.pid = w.blocked_by
		WHERE w.blocked_by IS NOT NULL ORDER BY 1});

	return join ' ', split /\n/, $pairs;
}

1;
