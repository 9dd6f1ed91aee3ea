# The system gives a process id to the next session. Its samples show its own waits, and
# nothing left by the session before.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

# Root of a process name space chooses the next process id. The server runs in another
# user name space, because it refuses root.
my $inside = q{
	unshare --user --map-user=1000 "$@" &
	server=$!
	echo inside
	while read -r last; do
		echo "$last" >/proc/sys/kernel/ns_last_pid || exit
		echo "last $last"
	done
	kill -INT $server
	wait $server};
my @enter = qw(unshare --user --map-root-user --pid --fork --kill-child --mount-proc sh -c);

my $works = qx{timeout 20 @enter 'echo 99 >/proc/sys/kernel/ns_last_pid && unshare --user --map-user=1000 id -u' 2>&1};
plan skip_all => "process ids cannot be chosen here: $works" unless $works eq "1000\n";

my $node = tacho_cluster('reused', start => 0);
my ($in, $out) = ('', '');
chomp(my $bin = qx{"$ENV{PG_CONFIG}" --bindir});
my $server = IPC::Run::start(
	[ @enter, $inside, 'sh', "$bin/postgres", '-D', $node->data_dir ],
	'<', \$in, '>', \$out, '2>', $node->logfile);
$server->pump until $out =~ /^inside$/m;
$node->poll_query_until('postgres', 'SELECT true') or die 'the server has not started';
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');

sub session { return tacho_session($node, app => $_[0])->run(q{SELECT 'pid ' || pg_backend_pid()}) }
sub pid { my ($session) = @_; return $session->{out} =~ /^pid (\d+)$/m ? $1 : die 'no pid' }

# Ends sessions one after the other. No one else connects in between, so their data in
# shared memory stays.
my $watcher = session('watcher');

sub end
{
	for my $session (@_)
	{
		my $pid = pid($session);

		$session->finish;
		$watcher->run("DO \$\$ BEGIN WHILE pg_stat_file('/proc/$pid/stat', true) IS NOT NULL
			LOOP PERFORM pg_sleep(0.01); END LOOP; END \$\$");
	}
	return;
}

# A session whose process has this id. Other processes may take it before.
sub session_with_pid
{
	my ($app, $pid) = @_;

	for (1 .. 50)
	{
		($in, $out) = ($pid - 1 . "\n", '');
		$server->pump until $out =~ /^last /m;
		my $session = session($app);
		return $session if pid($session) == $pid;
		end($session);
	}
	die "no session got process id $pid";
}

# The newest session ends first. The next session gets the process id of the newest one.
# It gets the place of the session that ended last, or from 16 on an unused place.
my @before = map { session("before $_") } 1 .. 6;
my $pid = pid($before[-1]);
end(reverse @before);
my $late = session_with_pid('late', $pid);
$late->send('SELECT pg_sleep(3600)');
$node->poll_query_until('postgres',
	"SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $pid");
my $since = server_ms($node) + 300;
wait_for_ticks($node, 5, $since);
is( $node->safe_psql('postgres', qq{
		SELECT DISTINCT wait_event_type, wait_event FROM tacho.samples(
		  since => @{[at($since)]}, n => null, application => 'late')}),
	'Timeout|PgSleep', 'a session that got a process id again is seen waiting');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$_->finish for $late, $watcher;

$server->finish;
done_testing();
