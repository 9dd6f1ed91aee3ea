# tacho watch on a server that records: a transaction that is left open makes others wait.
# One alarm tells it, one message its end; through a connection a check of Nagios sees the same.
# tacho mcp names the holder to a client.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoManual qw(blocks);
use TachoMcp qw(mcp);
use TachoTest qw(wait_until_in_history);
use TachoRecord qw(wait_until);
use TachoWatch qw(begin_queue queue_rules);
use Test::More;

my $bin = dirname($ENV{TACHO_PROGRAM});
foreach my $name (qw(watch mcp)) { plan skip_all => "there is no tacho-$name" unless -x "$bin/tacho-$name" }
my $page = abs_path("$FindBin::RealBin/../../..") . '/docs/watch.md';
plan skip_all => 'there is no docs directory' unless -e $page;
my $node = PostgreSQL::Test::Cluster->new('watch');
$node->init;
$node->append_conf('postgresql.conf', <<"END");
shared_preload_libraries = 'tacho'
tacho.program = '$ENV{TACHO_PROGRAM}'
tacho.sample_interval = 100ms
tacho.flush_interval = 1s
tacho.statements_interval = 1s
END
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
wait_until_in_history($node);
my $tape = $node->data_dir . '/tacho';
my $place = PostgreSQL::Test::Utils::tempdir();

# The rules: a queue of two seconds; the command appends each message to a file.
append_to_file("$place/command", "cat >>'$place/messages'\n");
append_to_file("$place/watch.toml", <<"END" . queue_rules());
every = "1s"
[send]
command = ["sh", "$place/command"]
END

# Looks once: the exit code and the line.
sub once
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ "$bin/tacho-watch", '--once', @_, '--config', "$place/watch.toml", '--state', "$place/state" ],
		'<', \undef, '>', \$out, '2>', \$error);
	return ($? >> 8, $out . $error);
}

sub messages { return -e "$place/messages" ? map { decode_json($_) } split /\n/, slurp_file("$place/messages") : () }

my ($code, $line) = once('--tape', "shop=$tape");
is($code, 0, 'a server without a queue has no alarm');
like($line, qr/^TACHO OK - 1 server, no alarm \| alarms=0$/, 'the check prints one line');

my ($holder, $waiter, $pid) = begin_queue($node);

# The program runs until both messages were sent.
my $watch = IPC::Run::start([ "$bin/tacho-watch", '--tape', "shop=$tape", '--config', "$place/watch.toml", '--state', "$place/state" ],
	'<', \undef, '>', \my $said, '2>', \my $errors);
wait_until('an alarm', sub { IPC::Run::pump_nb($watch); messages() > 0 });
my ($alarm) = messages();
is_deeply([ @$alarm{qw(status server rule object severity)} ], [ 'alarm', 'shop', 'queue', "process $pid", 'critical' ],
	'the alarm names the head of the queue');
like($alarm->{summary}, qr/^a session waits for \d+ s behind process $pid, which is idle in transaction$/, 'the alarm explains the queue in a sentence');

my ($shown) = map { JSON::PP->new->decode($_->{text}) } grep { $_->{language} eq 'json' } blocks($page);
is_deeply([ sort keys %$alarm ], [ sort keys %$shown ], '... with the members that docs/watch.md shows');

# An assistant asks for the holder meanwhile.
my $mcp = mcp('--dsn', $node->connstr('postgres'));
my ($head) = @{ $mcp->call('locks', since => '1m')->{rows} };
$mcp->end;
is("$head->{pid} $head->{application} $head->{state}", "$pid forgotten idle in transaction", 'tacho mcp names the head through a connection');

$holder->run('ROLLBACK');
wait_until('the end', sub { IPC::Run::pump_nb($watch); messages() > 1 });
my (undef, $over, @more) = messages();
is_deeply([ @$over{qw(status rule object)} ], [ 'over', 'queue', "process $pid" ], 'the end of the alarm is sent');
$watch->kill_kill;
is(scalar @more, 0, 'no second end is sent');
($code, $line) = once('--dsn', 'shop=' . $node->connstr('postgres'));
is($code, 0, 'through a connection there is no alarm either');
$_->finish foreach $waiter, $holder;

$node->stop;
wait_until('the recorder is silent for its limit', sub {
	append_to_file("$place/short.toml", "[rules.recorder]\nabove = 1.0\nclear = 0.5\n") unless -e "$place/short.toml";
	my $silent = '';
	IPC::Run::run([ "$bin/tacho-watch", '--once', '--tape', "shop=$tape", '--config', "$place/short.toml" ], '<', \undef, '>', \$silent);
	($code, $line) = ($? >> 8, $silent);
	return $code == 2;
});
like($line, qr/^TACHO CRITICAL - shop recorder: nothing was recorded for \d+ s \| alarms=1$/, 'a server that stands still has an alarm');
done_testing();
