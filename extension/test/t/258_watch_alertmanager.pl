# A real alertmanager takes the alarms of tacho watch: its alert names the head of a lock queue,
# and ends when the queue does, long before the alertmanager would end it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoRecord qw(wait_until);
use TachoTest qw(tacho_cluster wait_until_recorded);
use TachoWatch qw(begin_queue queue_rules);
use Test::More;

my $watch_program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-watch';
plan skip_all => "there is no $watch_program" unless -x $watch_program;
foreach my $name (qw(prometheus-alertmanager amtool)) { plan skip_all => "$name is not installed" unless -x "/usr/bin/$name" }

my $node = tacho_cluster('alertmanager');
wait_until_recorded($node);
my $place = PostgreSQL::Test::Utils::tempdir();
my $port = PostgreSQL::Test::Cluster::get_free_port();

append_to_file("$place/alertmanager.yml", <<"END");
global: {resolve_timeout: 1h}
route: {receiver: nobody}
receivers: [{name: nobody}]
END
append_to_file("$place/watch.toml", <<"END" . queue_rules());
page = "https://tacho.example/"
every = "1s"
[send]
alertmanager = "http://127.0.0.1:$port/api/v2/alerts"
END

my @started;
END
{
	my $status = $?;
	$_->kill_kill(grace => 5) foreach grep { $_->pumpable } @started;
	$? = $status;
}

# Starts a program whose messages go to a file.
sub start
{
	my ($name, @command) = @_;

	push @started, IPC::Run::start(\@command, '<', \undef, '>', "$place/$name.log", '2>&1');
	return;
}

# Alerts that go on; undef if the alertmanager does not answer.
sub alerts
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ 'amtool', '--alertmanager.url', "http://127.0.0.1:$port", qw(alert query -o json) ],
		'<', \undef, '>', \$out, '2>', \$error) or return;
	return decode_json($out);
}

start('alertmanager', 'prometheus-alertmanager', "--config.file=$place/alertmanager.yml", "--storage.path=$place/data",
	"--web.listen-address=127.0.0.1:$port", '--cluster.listen-address=');
wait_until('the alertmanager answers', sub { alerts() });
start('watch', $watch_program, '--tape', 'shop=' . $node->data_dir . '/tacho', '--config', "$place/watch.toml", '--state', "$place/state");

my ($holder, $waiter, $pid) = begin_queue($node);

my $found;
wait_until('an alert', sub { $found = alerts(); $found && @$found });
is_deeply([ map { $_->{labels} } @$found ],
	[ { alertname => 'tacho_queue', server => 'shop', object => "process $pid", severity => 'critical' } ],
	'the alert names the head of the queue');
my ($alert) = @$found;
is($alert->{status}{state}, 'active', 'the alert is active');
like($alert->{annotations}{summary}, qr/^shop: a session waits for \d+ s behind process $pid, which is idle in transaction$/,
	'the alert has a sentence');
like($alert->{generatorURL}, qr{^https://tacho\.example/\?server=shop&since=.*&tab=locks$}, 'the alert has the address of the page');

# it is repeated while it goes on, and stays one alert
my $updated = $alert->{updatedAt};
wait_until('it is repeated', sub { $found = alerts(); $found->[0]{updatedAt} ne $updated });
is(scalar @$found, 1, 'the alert stays one alert');
is($found->[0]{startsAt}, $alert->{startsAt}, 'the alert keeps its begin');

$holder->run('ROLLBACK');
wait_until('its end', sub { my $now = alerts(); $now && !@$now });
ok(1, 'the alert ends with the queue');
unlike(slurp_file("$place/watch.log"), qr/could not/, 'the alertmanager took each message');
$_->finish foreach $waiter, $holder;
$node->stop;
done_testing();
