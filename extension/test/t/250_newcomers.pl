# Makes mistakes of newcomers: each message names the next step.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoRecord qw(wait_until);
use TachoTest qw(tacho_cluster);
use Test::More;

my $bin = dirname($ENV{TACHO_PROGRAM});
plan skip_all => 'root reads everything' if $> == 0;
foreach my $name (qw(doctor live record ship web)) { plan skip_all => "there is no tacho-$name" unless -x "$bin/tacho-$name" }
delete @ENV{qw(PGDATA TACHO_TAPE PGAPPNAME)};

my $node = tacho_cluster('newcomer');
my $stock = PostgreSQL::Test::Cluster->new('stock');
# not a copy of the template: it is another system
$stock->init(extra => ['--data-checksums']);
$stock->start;
my ($data, $stock_data) = map { abs_path($_->data_dir) } $node, $stock;
my ($ours, $theirs) = map { $_->connstr('postgres') } $node, $stock;
my $tape = "$data/tacho";
my $place = PostgreSQL::Test::Utils::tempdir();
my $mistakes = 0;
wait_until('history', sub { IPC::Run::run([ "$bin/tacho", 'top', '--tape', $tape ], '>', \my $out, '2>', \my $error) });

# A command line that is wrong: its exit code, and the step on standard error.
sub mistake
{
	my ($name, $code, $step, $program, @arguments) = @_;
	my ($out, $error) = ('', '');

	IPC::Run::run([ "$bin/$program", @arguments ], '<', \undef, '>', \$out, '2>', \$error, IPC::Run::timeout(60));
	$mistakes++;
	is($? >> 8, $code, $name);
	like($program eq 'tacho-doctor' ? $out . $error : $error, $step, 'the message has the next step');
	return;
}

# A program that goes on, until its output has the step.
sub goes_on
{
	my ($name, $step, $program, @arguments) = @_;
	my $said = '';
	my $run = IPC::Run::start([ "$bin/$program", @arguments ], '<', \undef, '>&', \$said, IPC::Run::timeout(60));

	wait_until($name, sub { $run->pump_nb; $said =~ $step });
	$run->signal('TERM');
	$run->finish;
	$mistakes++;
	like($said, $step, $name);
	return;
}

# Which directory.
my $which = qr/^hint: Specify the directory of the history files: the setting tacho\.directory, by default tacho in the data directory\.$/m;
mkdir "$place/$_" or die $! foreach qw(empty locked);
append_to_file("$place/file", '');
chmod 0, "$place/locked";
mistake('a directory that is not there', 1, $which, 'tacho', 'top', '--tape', "$place/none");
mistake('a directory without history', 1, $which, 'tacho', 'top', '--tape', "$place/empty");
mistake('a file', 1, $which, 'tacho', 'top', '--tape', "$place/file");
mistake('a data directory', 1, qr/^hint: This is a data directory; its history is in "\Q$tape\E"\.$/m, 'tacho', 'top', '--tape', $data);
mistake('a data directory without history', 1, qr/^hint: This is a data directory without a history\. Run tacho doctor/m,
	'tacho', 'top', '--tape', $stock_data);
mistake('another user', 3, qr/^hint: The files belong to the user of the server.* sudo -u postgres\.$/m, 'tacho', 'top', '--tape', "$place/locked");
mistake('markers where nobody records', 1, qr/^hint: Start the server or tacho record: the recorder writes the markers\.$/m, 'tacho', 'mark', 'deploy', '--tape', "$place/empty");

# Which question.
mistake('options of psql', 2, qr/^hint: Watch a server with: tacho live --dsn /m, 'tacho', 'top', '-h', 'localhost');
mistake('a misspelt command', 2, qr/^hint: Did you mean "top"\?$/m, 'tacho', 'topp');
mistake('an unknown command', 2, qr/^hint: See "tacho --help"/m, 'tacho', 'frobnicate');
mistake('a program that is not installed', 2, qr/^hint: It is a Python package: install /m, 'tacho', 'fleet', 'top');
mistake('a misspelt dimension', 2, qr/^hint: Available are .*\bwait_event\b/m, 'tacho', 'top', 'wait_evnt', '--tape', $tape);
mistake('a misspelt option', 2, qr/a similar argument exists: '--username'/, 'tacho', 'top', '--userr', 'x', '--tape', $tape);
mistake('a time in another form', 2, qr/^hint: .*\d\d:\d\d/m, 'tacho', 'top', '--since', '3pm', '--tape', $tape);
mistake('an end before the begin', 2, qr/^hint: Swap the two/m, 'tacho', 'top', '--since', '2020-01-02', '--until', '2020-01-01', '--tape', $tape);
mistake('a report into no directory', 1, qr{^error: could not write file "\Q$place\E/none/x\.html": .*\nhint: Specify a file in an existing directory}m,
	'tacho', 'report', '--output', "$place/none/x.html", '--tape', $tape);
my ($empty) = run_command([ "$bin/tacho", 'top', '--since', '2020-01-01', '--until', '2020-01-02', '--tape', $tape ]);
like($empty, qr/\(no rows: the period was not observed\)\nhint: Use status to see the times that the history covers\.$/, 'a window without history has a hint');
$mistakes++;

# The terminal and the page.
mistake('no terminal', 2, qr/^hint: In scripts, use tacho top/m, 'tacho-live', '--tape', $tape);
mistake('an address for all hosts', 2, qr/^hint: Name a file with a token \(--token-file\)/m, 'tacho-web', '--tape', $tape, '--listen', '0.0.0.0:0');
mistake('a port alone', 2, qr/^hint: Write it as 127\.0\.0\.1:8432/m, 'tacho-web', '--tape', $tape, '--listen', '8432');
goes_on('a page without history', qr/^warning: .* has no history\nhint: Specify the directory/m, 'tacho-web', '--tape', "$place/empty", '--listen', '127.0.0.1:0');
my $url = '';
my $web = IPC::Run::start([ "$bin/tacho-web", '--tape', $tape, '--listen', '127.0.0.1:0' ], '<', \undef, '>', \$url, '2>', \my $web_error, IPC::Run::timeout(120));
wait_until('the page', sub { $web->pump_nb; $url =~ /\n/ });
my ($port, $token) = $url =~ /:(\d+)\/(\?token=\w+)/;
mistake('a port that is taken', 1, qr/^hint: Another program listens there.* Choose another port: --listen /m,
	'tacho-web', '--tape', $tape, '--listen', "127.0.0.1:$port");

# An answer of the page to a browser.
sub answer
{
	my ($path, $host) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 30) or die "no page: $@";

	print $socket "GET $path HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n";
	return do { local $/; <$socket> };
}
foreach my $each (
	[ 'a page without its token', '/', "127.0.0.1:$port", 401, 'Open the address that tacho web printed' ],
	[ 'a page by the name of the host', "/$token", "db.example.com:$port", 421, 'allow the name with --trusted-host' ],
	[ 'a token', "/$token", "127.0.0.1:$port", 303, '' ],
	[ 'a token that was used', "/$token", "127.0.0.1:$port", 401, 'Open the address that tacho web printed' ])
{
	my ($name, $path, $host, $status, $step) = @$each;
	like(answer($path, $host), qr{\AHTTP/1\.1 $status .*\Q$step\E}s, $name);
	$mistakes++ if $step;
}
$web->signal('TERM');
$web->finish;

# Recording through a connection.
mistake('no directory to record into', 2, qr/--tape <DIR>/, 'tacho-record', $theirs);
mistake('options of psql for a recorder', 2, qr/^hint: Pass the connection as one string: tacho record "host=HOST/m, 'tacho-record', '-h', 'db', '--tape', "$place/x");
mistake('the directory of a server', 5, qr/^hint: A server or another tacho record writes there\. Use a separate directory/m,
	'tacho-record', $theirs, '--tape', $tape);
mistake('a directory that cannot be made', 1, qr/^hint: Specify a directory that this user can write to/m, 'tacho-record', $theirs, '--tape', "$place/file/x");
mistake('no such file of servers', 1, qr/^hint: docs\/record\.md has an example/m, 'tacho-record', '--config', "$place/none.toml");
my $again = qr/not recording: .*\nLOG:  retrying until the connection works; the connection string means: /;
goes_on('a role that is not there', qr/$again.* tacho record --check /, 'tacho-record', "$theirs user=nobody", '--tape', "$place/record");
goes_on('a port where nobody listens', $again, 'tacho-record', 'host=' . $stock->host . ' port=1 dbname=postgres', '--tape', "$place/record");
goes_on('a host in the place of a database', qr/${again}dbname=db\.example\.com;/, 'tacho-record', 'db.example.com', '--tape', "$place/record");
my $recorder = IPC::Run::start([ "$bin/tacho-record", $theirs, '--tape', "$place/record" ], '<', \undef, '>&', \my $log, IPC::Run::timeout(120));
wait_until('a recorder', sub { $recorder->pump_nb; -e "$place/record/recorder-settings.toml" });
$recorder->signal('TERM');
$recorder->finish;
goes_on('the history of another server', qr/^WARNING:  this directory has the history of another server.* use a separate directory for each server \(--tape\)$/m,
	'tacho-record', $ours, '--tape', "$place/record");

# Shipping.
mistake('an address of no store', 1, qr/^hint: Use file:\/\/\/DIRECTORY or s3:\/\/BUCKET/m, 'tacho-ship', '--tape', $tape, '--to', 'ftp://lake/x');
mistake('nothing to ship', 1, $which, 'tacho-ship', '--tape', "$place/empty", '--to', "file://$place/lake");

# The doctor's subject.
mistake('no such subject', 2, qr/^hint: Specify a data directory, a directory of history, or a server: /m, 'tacho-doctor', '/nope');
mistake('no such cluster', 2, qr/^hint: There /m, 'tacho-doctor', '9/none');
mistake('a role that the server does not know', 2, qr/^ +try the same with psql: psql "host=.* dbname=postgres"$/m, 'tacho-doctor', "$ours user=nobody");

# The server: SQL says it, or the doctor does.
sub says
{
	my ($name, $server, $sql, $step) = @_;
	my ($out, $error) = ('', '');

	$server->psql('postgres', $sql, stdout => \$out, stderr => \$error);
	$mistakes++;
	like($error, $step, $name);
	return;
}
says('functions of a library that is not loaded', $stock, 'CREATE EXTENSION tacho; SELECT * FROM tacho.status()',
	qr/HINT:  Add tacho to shared_preload_libraries and restart the server\./);
says('a misspelt dimension in SQL', $node, q{SELECT * FROM tacho.top('wait_evnt')}, qr/HINT:  Available are /);
$node->safe_psql('postgres', 'CREATE ROLE visitor LOGIN');
mistake('a role without rights', 1, qr/^ +run: GRANT pg_read_all_stats TO visitor;$/m, 'tacho-doctor', "$ours user=visitor");
foreach my $each (
	[ 'a program that is not there', q{tacho.program = '/nope'}, qr/install the tacho program there, or set tacho\.program and restart/ ],
	[ 'a directory that cannot be made', q{tacho.directory = '/proc/nope'}, qr/let the user of the server write there, or set tacho\.directory and restart/ ],
	[ 'no place for a worker', q{max_worker_processes = 0}, qr/raise max_worker_processes and restart/ ])
{
	my ($name, $setting, $step) = @$each;

	# the last line of a setting counts
	$node->append_conf('postgresql.conf', $setting);
	$node->restart;
	my $out = '';
	wait_until($name, sub { IPC::Run::run([ "$bin/tacho-doctor", $ours ], '>', \$out, '2>', \my $error); $out =~ $step });
	mistake($name, 2, qr/^FAIL recording: off: .*\n +$step/m, 'tacho-doctor', $ours);
	$node->append_conf('postgresql.conf', "tacho.program = '$ENV{TACHO_PROGRAM}'\ntacho.directory = 'tacho'\nmax_worker_processes = 8");
}
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', q{'tachoo'});
mistake('a misspelt library', 1, qr/^no   preload: shared_preload_libraries is 'tachoo'\n +write into \Q$data\E\/postgresql\.conf: /m, 'tacho-doctor', $data);
mistake('a server that is down', 1, qr/^no   server: not running\n +run: \S+ start -D /m, 'tacho-doctor', $data);

cmp_ok($mistakes, '>=', 45, 'at least 45 mistakes have a next step');
done_testing();
