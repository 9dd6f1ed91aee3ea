# Incidents that make sessions wait. Each wait that the table of docs/waits.md names is recorded in
# its incident, for the kind of process that its explanation speaks of.
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use IPC::Run;
use JSON::PP qw(decode_json);
use POSIX qw(strftime);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatements qw(pgbench_script);
use TachoTest qw(server_ms tacho_cluster tacho_session wait_until_in_history wait_until_recorded);
use Test::More;
use Time::HiRes qw(sleep);

# An incident needs CPUs that others leave alone: its waits must be the largest.
plan skip_all => 'incidents need a quiet machine: make test-incidents' unless $ENV{TACHO_INCIDENTS};

my $page = abs_path("$FindBin::RealBin/../../..") . '/docs/waits.md';
use constant SECONDS => 6;

my $node = tacho_cluster('waits_seen', interval => '20ms', init => { allows_streaming => 'logical' }, conf => q{
fsync = on
shared_buffers = 16MB
max_wal_size = 64MB
checkpoint_flush_after = 256kB
archive_mode = on
archive_command = 'sleep 0.5'
max_connections = 60
});
my @running;
END { my $status = $?; $_->kill_kill foreach grep { $_->pumpable } @running; $? = $status }

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Starts some clients that repeat a script.
my $scripts = 0;
sub clients
{
	my ($count, $script) = @_;
	my $path = pgbench_script($node, 'waits' . ++$scripts, $script);
	my $out = '';

	push @running, IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $path, '-c', $count, '-T', 600, 'postgres' ],
		'<', \undef, '>&', \$out);
	return;
}

sub run
{
	push @running, IPC::Run::start([@_], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
	return;
}

# Sessions that stay open until the end of an incident.
my @open;
sub session
{
	my (@statements) = @_;
	my $session = tacho_session($node);
	my $last = pop @statements;

	$session->run($_) foreach @statements;
	$session->send($last) if $last;
	push @open, $session;
	return $session;
}

# Ends all that an incident has started.
sub finish
{
	$_->kill_kill foreach splice @running;
	$node->psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()});
	$_->{harness}->kill_kill foreach splice @open;
	return;
}

sql(q{
	CREATE TABLE item(id int PRIMARY KEY, n int); INSERT INTO item SELECT n, 0 FROM generate_series(1, 100) n;
	CREATE TABLE big AS SELECT n AS id, n % 5000 AS customer, repeat('x', 500) AS note FROM generate_series(1, 200000) n;
	CREATE INDEX big_id ON big(id);
	CREATE TABLE filled(id int, note text);
	CREATE TABLE pinned AS SELECT n AS id FROM generate_series(1, 1000) n;
	CREATE EXTENSION dblink});
my $lookup = "\\set c random(1, 200000)\nSELECT note FROM big WHERE id = :c;\n";

# Name of the incident, what happens in it.
my @incidents = (
	'a row is locked' => sub {
		session('BEGIN', 'UPDATE item SET n = 1 WHERE id = 7', '');
		clients(6, "UPDATE item SET n = n + 1 WHERE id = 7;\n");
	},
	'a table is changed' => sub {
		session('BEGIN', 'SELECT count(*) FROM item', '');
		session('ALTER TABLE item ADD COLUMN later int');
		clients(4, "SELECT count(*) FROM item;\n");
	},
	'advisory locks' => sub {
		session('SELECT pg_advisory_lock(1)', '');
		clients(3, "SELECT pg_advisory_lock(1);\n");
	},
	'an index is built beside a transaction' => sub {
		session('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM item', '');
		session('CREATE INDEX CONCURRENTLY item_n ON item(n)');
	},
	'notifications' => sub { clients(12, "NOTIFY news;\n") },
	'small commits' => sub { clients(12, "\\set c random(1, 100)\nUPDATE item SET n = n + 1 WHERE id = :c;\n") },
	'cold reads' => sub { clients(6, $lookup); clients(4, "SELECT count(*) FROM big;\n") },
	'sorts on disk' => sub { clients(3, "SET work_mem = '64kB';\nSELECT count(*) FROM (SELECT DISTINCT note || id FROM big) AS t;\n") },
	'rows are loaded' => sub { clients(6, "INSERT INTO filled SELECT n, repeat('y', 800) FROM generate_series(1, 3000) n;\n") },
	'a client reads slowly' => sub { run('bash', '-c', "psql -Xc 'COPY big TO STDOUT' '" . $node->connstr('postgres') . q{' | (sleep 600)}) },
	'a client sends slowly' => sub { run('bash', '-c', "sleep 600 | psql -Xc 'COPY filled FROM STDIN' '" . $node->connstr('postgres') . q{'}) },
	'sleeping sessions' => sub { clients(2, "SELECT pg_sleep(1);\n") },
	'parallel queries' => sub {
		clients(3, "SET parallel_setup_cost = 0;\nSET parallel_tuple_cost = 0;\nSET min_parallel_table_scan_size = 0;\nSELECT count(*) FROM big a JOIN big b USING (id) WHERE a.note > 'a';\n");
	},
	'a throttled vacuum' => sub { session("SET vacuum_cost_delay = '20ms'", 'SET vacuum_cost_limit = 50', 'VACUUM (DISABLE_PAGE_SKIPPING) big') },
	'a spread checkpoint' => sub { clients(4, "UPDATE big SET customer = customer + 1 WHERE id % 50 = 0;\n") },
	'checkpoints on demand' => sub { clients(3, "CHECKPOINT;\n"); clients(2, "UPDATE big SET customer = customer + 1 WHERE id % 500 = 0;\n") },
	'a cursor pins a page' => sub {
		session('BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM pinned', 'FETCH 1 FROM c', '');
		sql('DELETE FROM pinned WHERE id > 500');
		session('VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) pinned');
	},
	'no synchronous standby' => sub {
		sql($_) foreach q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'}, 'SELECT pg_reload_conf()';
		clients(3, "UPDATE item SET n = n + 1 WHERE id = 1;\n");
	},
	'a throttled backup' => sub { run('pg_basebackup', '-d', $node->connstr('postgres'), '-D', $node->basedir . '/copy', '-r', '1M', '-c', 'fast', '-X', 'none') },
	'a deferrable transaction' => sub {
		session('BEGIN ISOLATION LEVEL SERIALIZABLE', 'UPDATE item SET n = 5 WHERE id = 5', '');
		session('BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE', 'SELECT count(*) FROM item');
	},
	'many subtransactions' => sub {
		session('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM item', '');
		clients(4, "BEGIN;\n" . join('', map { "SAVEPOINT s$_;\nUPDATE item SET n = n + 1 WHERE id = :client_id + 1;\n" } 1 .. 100) . "SELECT count(*) FROM item;\nCOMMIT;\n");
		clients(4, "SELECT count(*) FROM item;\n");
	},
	'a consumer of a logical slot' => sub {
		sql(q{SELECT pg_create_logical_replication_slot('consumer', 'test_decoding')});
		run('pg_recvlogical', '-d', $node->connstr('postgres'), '-S', 'consumer', '--start', '-f', '/dev/null');
	},
	'an extension waits' => sub { session(q{SELECT * FROM dblink('} . $node->connstr('postgres') =~ s/'/''/gr . q{', 'SELECT 1 FROM pg_sleep(600)') AS t(n int)}) },
	'many connections' => sub { clients(40, "SELECT 1;\n") },
	'databases are made' => sub { clients(1, "DROP DATABASE IF EXISTS made;\nCREATE DATABASE made STRATEGY file_copy;\n") });

# Plays them, and asks afterwards: a question would make a session wait, too.
wait_until_recorded($node);
my @played;
while (my ($name, $play) = splice @incidents, 0, 2)
{
	my $since = server_ms($node);
	$play->();
	sleep(SECONDS);
	push @played, [ $name, $since, server_ms($node) ];
	finish();
	sql($_) foreach 'ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()';
}
wait_until_in_history($node);

# Prints a command of tacho line by line.
sub tacho
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ $ENV{TACHO_PROGRAM}, @_ ], '<', \undef, '>', \$out, '2>', \$error) or die $error;
	return $out;
}

# A moment as RFC 3339 writes it.
sub moment { my ($ms) = @_; return strftime('%Y-%m-%dT%H:%M:%S', gmtime($ms / 1000)) . sprintf('.%03dZ', $ms % 1000) }

# The waits: event → incident → kind of process → seconds.
my (%seen, %total);
foreach my $window (@played)
{
	my ($name, $since, $until) = @$window;
	my $rows = tacho(qw(top wait_event --by backend_type --scope all -n all --json --tape), $node->data_dir . '/tacho',
		'--since', moment($since), '--until', moment($until));

	foreach my $row (grep { $_->{key} } @{ decode_json($rows) })
	{
		$seen{$row->{key}}{$name}{ $row->{by_key} } += $row->{backend_seconds};
		$total{$row->{key}} += $row->{backend_seconds};
	}
}
foreach my $event (sort { $total{$b} <=> $total{$a} } keys %total)
{
	my $where = $seen{$event};
	note(sprintf '%8.1f s %-28s %s', $total{$event}, $event, join '; ', map {
		my $kinds = $where->{$_};
		"$_: " . join ', ', map { sprintf '%s %.1f', $_, $kinds->{$_} } sort keys %$kinds;
	} sort keys %$where);
}
$node->stop('immediate');

# The table: each wait that this major has was seen in the incident that its row names.
my ($major) = $node->config_data('--version') =~ /(\d+)/;
my %exists = map { lc($_) => 1 } split /\n/, tacho(qw(explain wait --major), $major);
my %all = map { lc($_) => $seen{$_} } keys %seen;
my @rows = map { [ /^\| `(\w+:\w+)` \| (.*?) \| / ] } grep { /^\| `\w+:\w+` \| / } split /\n/, slurp_file($page);
cmp_ok(scalar @rows, '>', 20, 'docs/waits.md has a table of waits that were checked');
foreach my $row (@rows)
{
	my ($event, $incident) = @$row;
	next unless $exists{ lc $event };
	ok(grep({ $incident eq $_ } keys %{ $all{ lc $event } // {} }), "$event: $incident");
}
done_testing();
