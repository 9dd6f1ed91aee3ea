# tacho-record says why it does not record: sessions that are hidden from it, causes
# that follow each other, a server that crashes, and a recorder that ends meanwhile.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use HTTP::Tiny;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoLocks qw(session);
use TachoRecord qw(ask markers moment record record_file record_program ticks wait_until);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('causes');
$node->init;
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;
my $superuser = $node->safe_psql('postgres', q{
	SET password_encryption = 'scram-sha-256';
	CREATE ROLE watcher LOGIN PASSWORD 'first';
	GRANT pg_monitor TO watcher;
	SELECT current_user});
unlink $node->data_dir . '/pg_hba.conf';
$node->append_conf('pg_hba.conf', "local all watcher scram-sha-256\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n");
$node->reload;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $root = $node->basedir . '/histories';
my $tape = "$root/shop";
my $conninfo = sprintf 'host=%s port=%s dbname=postgres user=watcher', $node->host, $node->port;
my $file = $node->basedir . '/record.toml';
append_to_file($file, qq{root = "histories"\nlisten = "127.0.0.1:$port"\n[[server]]\nname = "shop"
interval = 100\nflush_interval = 1000\nconninfo = "$conninfo password=first"\n});
chmod 0600, $file;

sub goes_on
{
	my $since = moment($node);

	wait_until('ticks', sub { ticks($tape, $since) >= 3 });
	return;
}

# Markers of a kind since a moment, as rows.
sub told
{
	my ($kind, $since) = @_;
	return grep { $_->{kind} eq $kind } ask($tape, 'markers', '--since', $since // '2000-01-01T00:00:00Z');
}

# A time with all digits of its fraction, to be compared as text.
sub of_ms { my ($time) = @_; return $time =~ s{(?:\.(\d+))?Z$}{'.' . substr(($1 // '') . '000', 0, 3) . 'Z'}er }

# The warnings of an answer.
sub said
{
	my (@command) = @_;
	my (undef, $error) = run_command([ $ENV{TACHO_PROGRAM}, @command, '--tape', $tape ]);

	return $error;
}

sub health
{
	my $answer = HTTP::Tiny->new->get("http://127.0.0.1:$port/health");
	return "$answer->{status} $answer->{content}";
}

sub sessions_end { return $node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'watcher'") }
sub password { my ($word) = @_; return $node->safe_psql('postgres', "ALTER ROLE watcher PASSWORD '$word'") }

my $recorder = record_file($file);
$SIG{__DIE__} = sub { diag($recorder->log) unless $^S };
my $sleeper = session($node, 's_sleeper');
$sleeper->send('SELECT pg_sleep(600)');
wait_until('a sample', sub { ask($tape, 'samples', '--since', '1s', '--application', 's_sleeper') });

# Hidden sessions are not recorded as idle ones.
my $hidden = 'sessions of others are hidden from role watcher, see pg_monitor';
my $since = moment($node);
$node->safe_psql('postgres', 'REVOKE pg_monitor FROM watcher');
wait_until('health', sub { health() =~ /^503 / });
like(health(), qr/^shop: not recorded: \Q$hidden\E$/m, '/health says that sessions are hidden');
wait_until('failed ticks', sub { my ($load) = ask($tape, 'aas', '--since', '1s'); $load->{ticks_failed} && !$load->{ticks_observed} });
my ($load) = ask($tape, 'aas', '--since', '1s');
is_deeply([ @$load{qw(avg_aas coverage_pct)} ], [ undef, 0 ], 'hidden sessions give no load, and nothing counts as observed');
like(said('top', 'state', '--since', '1m'),
	qr/^warning: sessions were hidden in \d+ ticks of the period\n.*At most [1-9]\d* at once: \Q$hidden\E\. These ticks count as unobserved\.$/m,
	'each answer has the reason');
is_deeply([ map { $_->{detail} } told('recording paused') ], [$hidden], 'a marker has the begin of the hiding');
like($recorder->log, qr/^WARNING:  server "shop": not recording: \Q$hidden\E$/m, 'the log has the reason');
$node->safe_psql('postgres', 'GRANT pg_monitor TO watcher');
goes_on();
wait_until('a gap', sub { grep { $_->{detail} =~ /hidden/ } told('gap') });
my ($gap) = grep { $_->{detail} =~ /hidden/ } told('gap');
like($gap->{detail}, qr/^\Q$hidden\E/, 'the gap has the reason');
cmp_ok(of_ms($gap->{period_start}), 'le', of_ms((told('recording paused'))[0]{marker_time}), 'the gap begins with the hiding');
is(health() =~ /^200 / ? 'well' : health(), 'well', '/health says that the server is recorded again');

# Log and health have the newest cause, a gap has the first and the last one.
$since = moment($node);
password('second');
sessions_end();
my $refused = 'could not connect: .*password authentication failed for user "watcher"';
wait_until('the cause', sub { health() =~ /^shop: not recorded: $refused/m });
like($recorder->log, qr/not recording: .*(terminating connection|connection to server was lost)/, 'the log has the lost connection');
like($recorder->log, qr/^WARNING:  server "shop": not recording: $refused/m, 'the log has the reason of the next attempts');
password('first');
goes_on();
wait_until('a gap', sub { grep { $_->{detail} =~ /password/ } told('gap', $since) });
like((grep { $_->{detail} =~ /password/ } told('gap', $since))[0]{detail},
	qr/^.*(?:terminating connection|connection to server was lost).*; at last $refused.* \(\d+ failures\)$/,
	'a gap has its first and its last cause, and the number of attempts');

# A recorder that ends without a connection leaves the reason.
$since = moment($node);
password('second');
sessions_end();
wait_until('the cause', sub { health() =~ /^shop: not recorded: $refused/m });
is($recorder->end('TERM'), 0, 'the recorder ends without a connection');
my ($stop) = told('stop', $since);
($gap) = told('gap', $since);
like($gap->{detail}, qr/$refused/, 'the gap before the end has its reason');
cmp_ok(of_ms($gap->{marker_time}), 'le', of_ms($stop->{marker_time}), 'the gap is recorded before the stop');
password('first');
# a recorder that starts within a tick leaves no time out
select(undef, undef, undef, 1);
$recorder = record_file($file);
goes_on();
wait_until('a gap', sub { grep { $_->{detail} eq 'the recorder did not run' } told('gap', $since) });
my ($idle) = grep { $_->{detail} eq 'the recorder did not run' } told('gap', $since);
cmp_ok(of_ms($idle->{period_start}), 'ge', of_ms($gap->{period_end}), 'the time without a recorder begins after that gap');

# A crash of one process ends all of them.
my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 's_sleeper'");
kill 'KILL', $pid;
wait_until('a marker', sub { told('crash recovery') });
is_deeply([ map { $_->{detail} } told('crash recovery') ],
	['all sessions of the server were ended by the crash of a process'], 'the crash of a process is a marker');
is(told('start', $since), 1, 'the crash of a process begins no new life');

# The marker of a start says whether the server had crashed before.
$node->restart;
wait_until('a start', sub { told('start', $since) == 2 });
goes_on();
$node->stop('immediate');
$node->start;
wait_until('a start', sub { told('start', $since) == 3 });
is_deeply([ map { $_->{detail} =~ /^([^,]*)/ } told('start', $since) ],
	[ 'recorder started', 'server restarted', 'server restarted after a crash or an immediate shutdown' ],
	'starts say how the server ended before');
is($recorder->end('TERM'), 0, 'the recorder ends after the crash');

# A session that waits longer between two ticks than the server lets it.
$node->safe_psql('postgres', "ALTER SYSTEM SET idle_session_timeout = '1500ms'");
$node->reload;
$tape = $node->basedir . '/idle';
$recorder = record($node->connstr('postgres') . " user=$superuser", $tape, interval => 2000);
goes_on();
unlike($recorder->log, qr/not recording/, 'idle_session_timeout does not end the connection');
is($recorder->end('TERM'), 0, 'the recorder ends after the idle time');

# With --own-sessions a role records its own sessions where others are hidden.
$node->safe_psql('postgres', 'ALTER SYSTEM RESET idle_session_timeout');
$node->reload;
$node->safe_psql('postgres', 'CREATE ROLE joe LOGIN');
$tape = $node->basedir . '/own';
$recorder = record($node->connstr('postgres') . ' user=joe', $tape, args => ['--own-sessions']);
goes_on();
is_deeply([ told('recording paused') ], [], 'own sessions are enough with --own-sessions');
is($recorder->end('TERM'), 0, 'the recorder of own sessions ends');

$node->stop;
done_testing();
