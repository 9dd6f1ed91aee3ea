# A load of known sessions, durations, users and applications: the readers return its
# figures.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at tacho_cluster tacho_session server_ms wait_for_ticks);
use POSIX qw(fmod);
use Test::More;
use Time::HiRes qw(usleep time);

my $node = tacho_cluster('known', interval => '50ms', conf => "deadlock_timeout = 600s\n");
$node->safe_psql('postgres', q{
CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN;
CREATE DATABASE shop;
CREATE DATABASE jobs;
CREATE TABLE held (id int); INSERT INTO held VALUES (1);
GRANT ALL ON held TO alice, bob;
});

# Three sessions of alice sleep, two of bob wait for a row lock that an idle
# transaction holds.
my $holder = tacho_session($node, app => 'holder');
$holder->run('BEGIN; UPDATE held SET id = 2');
my @sessions = ($holder);
for my $n (1 .. 3)
{
	my $s = tacho_session($node, user => 'alice', db => 'shop', app => 'billing');
	push @sessions, $s->send('SELECT pg_sleep(3600)');
}
for my $n (1 .. 2)
{
	my $s = tacho_session($node, user => 'bob', app => 'reports');
	push @sessions, $s->send('UPDATE held SET id = 3');
}
$node->poll_query_until('postgres', q{
SELECT count(*) = 5 FROM pg_stat_activity
 WHERE wait_event IN ('PgSleep', 'transactionid', 'tuple')});

# A window in which nothing changes: every tick sees the same five sessions.
usleep(300_000);
my $since = server_ms($node);
sleep 3;
my $until = server_ms($node);
wait_for_ticks($node, 5, $until);

my $window = "since => @{[at($since)]}, until => @{[at($until)]}";

sub rows
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

is( rows("SELECT key, avg_aas FROM tacho.top('username', $window) WHERE key IN ('alice', 'bob') ORDER BY 2 DESC"),
	"alice|3.0000\nbob|2.0000",
	'load by user is the load that was made');
is( rows("SELECT key, avg_aas FROM tacho.top('application', $window) WHERE key IN ('billing', 'reports') ORDER BY 2 DESC"),
	"billing|3.0000\nreports|2.0000",
	'load by application is the load that was made');
is( rows("SELECT avg_aas, peak_sessions FROM tacho.aas($window, database => 'shop')"),
	'3.0000|3',
	'load of one database is the load that was made');
is( rows("SELECT key, avg_aas FROM tacho.top('wait_event_type', $window) WHERE key IN ('Lock', 'Timeout') ORDER BY 2 DESC"),
	"Timeout|3.0000\nLock|2.0000",
	'load by wait event type is the load that was made');
is( rows("SELECT avg_aas FROM tacho.aas($window, application => 'holder', scope => 'foreground', state => 'idle in transaction')"),
	'1.0000',
	'the idle transaction is recorded outside the load');
is( rows("SELECT avg_aas FROM tacho.aas($window, application => 'holder')"),
	'0.0000', 'the idle transaction does not count as load');
is( rows("SELECT query_text FROM tacho.top('query_id', $window, username => 'bob', n => 1)"),
	'UPDATE held SET id = $1',
	'the query text is recorded with constants replaced');
is( rows("SELECT count(*), count(DISTINCT pid) FROM tacho.samples($window, n => 1000000, username => 'bob')")
	  eq rows("SELECT 2 * ticks_observed, 2 FROM tacho.aas($window)") ? 'same' : 'different',
	'same',
	'samples() has two rows a tick');

# A job of half a slot that begins with every fourth one: samples do not run in
# step with the clock, which would see it always or never. How long it was
# active the server has counted, whatever else the machine does.
my $job = tacho_session($node, db => 'jobs', app => 'clockwork');
my $jobs = 80;
my $from = server_ms($node);
for (1 .. $jobs)
{
	usleep(1e6 * (0.2 - fmod(time(), 0.2)));
	$job->run('SELECT pg_sleep(0.025)');
}
$job->finish;
$node->poll_query_until('postgres',
	q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'jobs'});
my $to = server_ms($node);
wait_for_ticks($node, 5, $to);
my ($samples, $missed) = split /\|/, rows(
	"SELECT round(backend_seconds / 0.05), ticks_expected - ticks_observed FROM tacho.aas(since => @{[at($from)]}, until => @{[at($to)]}, database => 'jobs')"
);
my $expected = rows(q{SELECT active_time FROM pg_stat_database WHERE datname = 'jobs'}) / 50;

# each end of a job adds at most a quarter to the variance
cmp_ok(abs($samples - $expected), '<=', 5 * sqrt(0.5 * $jobs) + $missed,
	"$jobs jobs in step with the clock: $samples samples, expected $expected, $missed missed");

$node->stop;
done_testing();
