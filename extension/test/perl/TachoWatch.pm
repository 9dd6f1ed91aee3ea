# Helpers of the tests of tacho watch: a lock queue, and rules that see it.
package TachoWatch;

use strict;
use warnings;
use Exporter 'import';
use TachoTest qw(tacho_session);

our @EXPORT_OK = qw(begin_queue queue_rules);

# Rules for the end of watch.toml: a queue of two seconds is an alarm, load is none.
sub queue_rules
{
	return <<'END';
[rules.queue]
above = 2.0
clear = 0.5
[rules.load]
on = false
END
}

# A session "forgotten" changes a row and leaves its transaction open; a session "waiter" waits for
# the row. Returns both sessions, and the process id of the first.
sub begin_queue
{
	my ($node) = @_;
	my $holder = tacho_session($node, app => 'forgotten');
	my $waiter = tacho_session($node, app => 'waiter');

	$node->safe_psql('postgres', 'CREATE TABLE item(id int, n int); INSERT INTO item VALUES (1, 0)');
	$holder->run('BEGIN');
	$holder->run('UPDATE item SET n = 1');
	$waiter->send('UPDATE item SET n = 2');
	my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'forgotten'});
	return ($holder, $waiter, $pid);
}

1;
