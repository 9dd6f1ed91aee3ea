# Scripted incidents for the tests of changes(): a load, innocent changes, a cause, and
# an innocent change that is nearer to the begin of the effect than the cause.
package TachoIncident;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use TachoMcp qw(investigate mcp mcp_program utc);
use TachoStatements qw(pgbench_script);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT_OK = qw(change_holds_lock incident innocent load server set sql stop_load);

# Seconds of load before the cause and after it, for waits that need no CPU half of them.
use constant { BEFORE => 12, AFTER => 10 };

my ($node, $deploy);

# A cluster with tables, whose statements are recorded each second, and with further
# settings.
sub server
{
	my ($name, $tables, $conf) = @_;

	$node = tacho_cluster($name, conf => "tacho.statements_interval = 1s\njit = off\nmax_parallel_workers_per_gather = 0\nshared_buffers = 64MB\n" . ($conf // ''));
	sql($tables . q{; CREATE TABLE items(id int, colour int); CREATE INDEX items_colour ON items(colour);
		CREATE TABLE news(id int); CREATE ROLE deploy SUPERUSER LOGIN});
	$deploy = tacho_session($node, app => 'migrate', user => 'deploy');
	return ($node, $deploy);
}

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Changes a setting of the server.
sub set
{
	my ($name, $value) = @_;

	sql($_) foreach "ALTER SYSTEM SET $name = '$value'", 'SELECT pg_reload_conf()';
	return;
}

# Starts a load of some clients by a script, $rate transactions a second in all.
my $loads = 0;
sub load
{
	my ($clients, $rate, $script, @options) = @_;
	my $path = pgbench_script($node, 'load' . ++$loads, $script);
	my ($in, $out) = ('', '');

	local $ENV{PGAPPNAME} = 'shop';
	return IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $path, '-c', $clients,
			($rate ? ('-R', $rate) : ()), '-T', 600, @options, 'postgres' ], '<', \$in, '>', \$out, '2>&1');
}

sub stop_load { $_->kill_kill foreach @_; return }

# Innocent changes: of another table, of settings that no query depends on.
my $innocent = 0;
sub innocent
{
	$innocent++;
	return (
		sub { $deploy->run("ALTER TABLE items ADD COLUMN c$innocent int") },
		sub { set('log_min_duration_statement', 5000 + $innocent) },
		sub { $deploy->run("CREATE INDEX news_$innocent ON news(id)") });
}

# Runs an incident while there is load: innocent changes, the cause, a nearer innocent
# change. Compares the first finding with "rule|object|t". The object of clients is the text
# of their query, the object of sessions their application. "t" means that the time of the
# finding lies between begin and end of the cause, or $does{around} seconds around them.
# $does{short}: takes half of the time. An agent finds the same by calls of tacho mcp.
sub incident
{
	my ($name, $expected, %does) = @_;
	my @innocent = innocent();
	my $around = ($does{around} // 1) * 1000;

	my $short = $does{short} ? 2 : 1;

	sleep(BEFORE / $short - 4);
	$innocent[0]->();
	$innocent[1]->();
	sleep(4);
	my $begin = server_ms($node);
	$does{cause}->();
	my $end = server_ms($node);
	($does{near} // $innocent[2])->();
	sleep(AFTER / $short);
	$does{end}->() if $does{end};
	my $until = server_ms($node);
	stop_load(@{ $does{load} });
	wait_for_ticks($node, 25, $until);
	my ($since, $last) = (at($begin - 2000), at($until));
	my ($from, $to) = (at($begin - $around), at($end + $around));
	my $answer = "tacho.changes(since => $since, until => $last, n => 3)";
	my $object = q{CASE WHEN dimension IN ('clients', 'statement') THEN query_text
		WHEN dimension = 'blocker' AND key NOT LIKE 'cycle%' THEN application ELSE key END};
	my $found = sql(qq{SELECT concat_ws('|', rule, $object, started BETWEEN $from AND $to)
		FROM $answer WHERE kind <> 'effect' ORDER BY rank LIMIT 1});
	my $all = sql(qq{SELECT rank, kind, rule, dimension, key, started, before, after, pct, explanation FROM $answer ORDER BY rank});
	like($found, $expected, $name) or diag($all);
	note($all);
	agent_finds($expected, $begin - 2000, $until, $from, $to);
	is(sql(qq{SELECT count(DISTINCT sums) FROM (
		SELECT concat_ws('|', sum(before), sum(after), sum(difference), sum(pct)) AS sums
		  FROM $answer WHERE kind = 'effect' AND unit = 'sessions' GROUP BY dimension) d}), 1, 'effects of each dimension add up to the same difference');
	is(sql(qq{SELECT string_agg(c::text, E'\n' ORDER BY rank) FROM $answer c}),
		sql(qq{SELECT string_agg(c::text, E'\n' ORDER BY rank) FROM $answer c}), 'the same window asked twice gives the same answer');
	return;
}

# An agent without a model names the same cause of a window, and the tool that its answer suggests
# shows something.
sub agent_finds
{
	my ($expected, $since, $until, $from, $to) = @_;
	return unless mcp_program();
	my $client = mcp('--tape', 'shop=' . $node->data_dir . '/tacho');
	my ($first, $tool, $shown) = investigate($client, since => utc($since), until => utc($until));
	my $object = $first->{dimension} =~ /^(?:clients|statement)$/ ? $first->{query_text}
		: $first->{dimension} eq 'blocker' && $first->{key} !~ /^cycle/ ? $first->{application} : $first->{key};
	my $in_time = sql("SELECT '$first->{started}' BETWEEN $from AND $to");

	# Connections have no key.
	my $named = join '|', grep { length } $first->{rule}, $object, $in_time;
	like($named, $expected, "... an agent names it by $client->{calls} requests");
	cmp_ok($shown, '>', 0, "... and $tool, the tool that it asks next, shows something");
	$client->end;
	return;
}

# An incident in a server with a table orders, which $lookup reads: a change of the table
# waits for a reader that is idle, and all others wait behind it.
sub change_holds_lock
{
	my ($lookup, %does) = @_;
	my $reader = tacho_session($node, app => 'psql');
	my $change = tacho_session($node, app => 'migrate', user => 'deploy');

	incident('a change of the schema holds others up', qr/^change holds lock\|orders\|t$/,
		%does,
		load => [ load(4, 40, $lookup) ],
		cause => sub {
			$reader->run('BEGIN');
			$reader->run('SELECT count(*) FROM orders WHERE id < 5');
			$change->send('ALTER TABLE orders ADD COLUMN comment text');
			sleep(0.2);
		},
		end => sub { $reader->run('COMMIT'); $change->run('SELECT 1') });
	return;
}

1;
