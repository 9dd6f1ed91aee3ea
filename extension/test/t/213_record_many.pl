# tacho-record of many servers: each has its directory, its name in the log and its line
# on the health page. One that hangs does not delay the others. SIGHUP applies the
# differences of the file.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use HTTP::Tiny;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoLocks qw(session);
use TachoProxy;
use TachoRecord qw(ask markers moment record_file record_program ticks wait_until);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('many');
$node->init;
$node->start;
$node->safe_psql('postgres', "CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher");
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(a b c);

my $sleeper = session($node, 's_sleeper');
$sleeper->send('SELECT pg_sleep(600)');

# Accepts connections and never answers.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
  or die "could not listen: $!";
my $nobody = 'host=127.0.0.1 connect_timeout=2 port=' . $silent->sockport;
my $root = $node->basedir . '/histories';
my $file = $node->basedir . '/record.toml';
my $port = PostgreSQL::Test::Cluster::get_free_port();
my ($host, $server_port) = ($node->host, $node->port);

my $proxy = TachoProxy->start("$host/.s.PGSQL.$server_port");
append_to_file($node->basedir . '/service.conf', "[its]\nhost=127.0.0.1\nport=" . $proxy->port . "\ndbname=b\nuser=watcher\n");
$ENV{PGSERVICEFILE} = $node->basedir . '/service.conf';

sub write_file
{
	my ($servers, $more) = @_;

	$more //= '';
	open my $out, '>', $file or die "could not write $file: $!";
	print $out qq{root = "histories"\nlisten = "127.0.0.1:$port"\n$more\n[defaults]\ninterval = 100\nflush_interval = 1000\n$servers};
	close $out or die "could not write $file: $!";
	return;
}

sub server
{
	my ($name, $more) = @_;

	return qq{[[server]]\nname = "$name"\n$more\n};
}

sub of_database { return qq{conninfo = "host=$host port=$server_port dbname=$_[0] user=watcher"} }

# Status and text of a page.
sub get
{
	my ($path) = @_;
	my $answer = HTTP::Tiny->new->get("http://127.0.0.1:$port$path");

	return ($answer->{status}, $answer->{content});
}

# The first line of the answer to a request with another Host.
sub get_of_another
{
	my $socket = IO::Socket::INET->new("127.0.0.1:$port") or die "could not connect: $!";

	print $socket "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
	my $line = <$socket>;
	return $line;
}

# Gaps that are not caused by a busy machine: there an answer takes half the interval, or
# the recorder waits for a CPU.
sub gaps { return grep { !/statement timeout|server answered after|recorder was delayed/ } markers($_[0], 'gap') }

my $since = moment($node);
write_file(server('a', of_database('a')) . server('b', 'service = "its"') . server('silent', qq{conninfo = "$nobody"}));
my $recorder = record_file($file);
$SIG{__DIE__} = sub { diag($recorder->log) unless $^S };
wait_until('two servers', sub { ticks("$root/a", $since) >= 5 && ticks("$root/b", $since) >= 5 });
wait_until('the log', sub { $recorder->log =~ /^WARNING:  server "silent": not recording: could not connect/m });
like($recorder->log, qr/^LOG:  server "$_": connected to PostgreSQL /m, "the log names $_") foreach qw(a b);

my ($status, $page) = get('/health');
is($status, 503, '/health fails if a server is not recorded');
like($page, qr/^2 of 3 servers are recorded$/m, '/health has the number of recorded servers');
like($page, qr/^silent: not recorded: could not connect/m, '/health has the reason of the other one');
($status, $page) = get('/metrics');
is($status, 200, '/metrics answers');
like($page, qr/^tacho_recorder_connected\{server="a"\} 1\.0$/m, '/metrics has the recorded server');
like($page, qr/^tacho_recorder_ticks_total\{server="silent"\} 0\.0$/m, '/metrics has the server that is not recorded');
like(get_of_another(), qr/ 403 /, 'a request with another host name gets no metrics');

# A server that stops answering has a gap; the others do not wait.
$since = moment($node);
$proxy->set('stall');
wait_until('a goes on', sub { ticks("$root/a", $since) >= 20 });
wait_until('silence', sub { $recorder->log =~ /server "b": not recording: server did not answer/ });
$proxy->set('pass');
wait_until('b again', sub { gaps("$root/b") >= 1 && ticks("$root/b", $since) >= 5 });
my @gaps = gaps("$root/b");
like($gaps[-1], qr/server did not answer within 5000 ms/, 'the gap of the lost server has its reason');
is_deeply([ gaps("$root/a") ], [], 'the other server has no gap');

# An invalid file changes nothing.
write_file(server('a', 'pace = 1'));
$recorder->signal('HUP');
wait_until('an error', sub { $recorder->log =~ /^ERROR:  configuration was not reloaded: file .*: server "a": exactly one of/m });
$since = moment($node);
wait_until('all go on', sub { ticks("$root/a", $since) >= 5 && ticks("$root/b", $since) >= 5 });

# One is removed, one is added, one is changed; one continues unchanged.
write_file(server('a', of_database('a')) . server('b', "service = \"its\"\ninterval = 200") . server('c', of_database('c')));
$recorder->signal('HUP');
wait_until('the file', sub { $recorder->log =~ /^LOG:  configuration reloaded, servers: 3$/m });
$since = moment($node);
wait_until('one that was added', sub { ticks("$root/c", $since) >= 5 });
wait_until('one that was changed', sub { markers("$root/b", 'start') == 2 && ticks("$root/b", $since) >= 5 });
wait_until('a sample', sub { ask("$root/b", 'samples', '--application', 's_sleeper', '--since', $since) > 0 });
is((ask("$root/b", 'samples', '--application', 's_sleeper', '--since', $since))[0]{weight_ms}, 200, 'a server whose settings changed has its new interval');
is_deeply([ map({ scalar markers("$root/a", $_) } qw(start stop)), scalar gaps("$root/a") ], [ 1, 0, 0 ],
	'a server whose settings stayed goes on without a gap');
wait_until('health', sub { (get('/health'))[0] == 200 });
unlike((get('/'))[1], qr/silent/, 'a removed server is not on the page');

# If files cannot be written, frames wait, and health says so and since when.
write_file(server('a', of_database('a')) . server('b', "service = \"its\"\nmin_free_space = 1000000000") . server('c', of_database('c')));
$recorder->signal('HUP');
wait_until('health', sub { ($status, $page) = get('/health'); $page =~ /^b: not written/m });
is($status, 503, '/health fails if a writer fails');
like($page, qr/^b: not written for \d+ s: less than 1000000000 MB are free; waiting frames: [1-9]\d+$/m, '/health has the reason and the waiting frames');
like($recorder->log, qr/^ERROR:  server "b": history is not being written: less than 1000000000 MB are free; recording resumes when there is space \(see --min-free-space\)$/m, 'the log has the reason and a hint');
like($page, qr/^2 of 3 servers are recorded$/m, 'the other servers are written');
($status, $page) = get('/metrics');
like($page, qr/^tacho_recorder_output_stuck\{server="b"\} 1\.0$/m, '/metrics has the server that cannot be written');
like($page, qr/^tacho_recorder_output_stuck\{server="a"\} 0\.0$/m, '/metrics has the servers that are written');
like($page, qr/^tacho_recorder_last_tick_age_seconds\{server="b"\} \d/m, '/metrics has the age of the last tick');
write_file(server('a', of_database('a')) . server('b', "service = \"its\"\ninterval = 200") . server('c', of_database('c')));
$recorder->signal('HUP');
wait_until('health', sub { (get('/health'))[0] == 200 });

# Without memory only samples are recorded.
write_file(server('a', of_database('a')) . server('b', "service = \"its\"\ninterval = 200") . server('c', of_database('c')),
	'memory_mb = 0');
$recorder->signal('HUP');
wait_until('no memory', sub { $recorder->log =~ /^WARNING:  server "a": memory limit reached: only samples are recorded$/m });
$since = moment($node);
wait_until('samples', sub { ticks("$root/a", $since) >= 5 });
ok(1, 'samples go on where memory is short');

is($recorder->end('TERM'), 0, 'SIGTERM ends the recorder');
is((markers("$root/$_", 'stop'))[-1], 'recorder stopped', "the tape of $_ has the stop") foreach qw(a b c);
$node->stop;
done_testing();
