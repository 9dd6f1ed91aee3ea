# Helpers of the tests of metrics: tacho-web, and a real Prometheus that scrapes
# it, both on ports of their own.
package TachoMetrics;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
use HTTP::Tiny;
use IPC::Run;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoRecord qw(wait_until);
use Test::More;

our @EXPORT_OK = qw(checked metric_programs prometheus query series start_web);

my $token = 'of-a-test-0123456789';
# processes to stop if the test dies
my @started;

END
{
	my $status = $?;

	$_->kill_kill(grace => 5) for grep { $_->pumpable } @started;
	$? = $status;
}

# Skips the test if there is no tacho-web beside the program under test, or no
# Prometheus.
sub metric_programs
{
	my $web = dirname($ENV{TACHO_PROGRAM}) . '/tacho-web';
	my @missing = grep { !-x "/usr/bin/$_" } qw(prometheus promtool);

	plan skip_all => "there is no $web" unless -x $web;
	plan skip_all => "@missing is not installed" if @missing;
	return;
}

# Starts tacho-web on a port, and waits until it answers. Fields: port, harness.
sub start_web
{
	my ($tape, $port) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/token';
	my $self = { port => $port };

	append_to_file($file, "$token\n");
	chmod 0600, $file or die "chmod: $!";
	$self->{harness} = IPC::Run::start(
		[
			dirname($ENV{TACHO_PROGRAM}) . '/tacho-web', '--tape', "shop=$tape",
			'--listen', "127.0.0.1:$port", '--token-file', $file
		],
		'<', \undef, '>', \my $out);
	push @started, $self->{harness};
	bless $self, 'TachoMetrics::Web';
	wait_until('tacho-web answers', sub { $self->get('/metrics')->{success} });
	return $self;
}

# Runs promtool on a text or files: returns exit code and output.
sub checked
{
	my ($input, @command) = @_;

	IPC::Run::run([ 'promtool', @command ], '<', \$input, '>', \my $out, '2>&1');
	return ($? >> 8, $out // '');
}

# Starts a Prometheus that scrapes a tacho-web every second or, without $web, only
# serves blocks of data. Fields: port, harness. Options: rules => file, data =>
# directory.
sub prometheus
{
	my ($web, %opt) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $data = $opt{data} // "$dir/data";
	my $self = { port => PostgreSQL::Test::Cluster::get_free_port() };
	my $rules = $opt{rules} ? "rule_files: ['$opt{rules}']" : '';
	my $jobs = !$web ? '' : qq{scrape_configs:
  - job_name: tacho
    authorization: {credentials: $token}
    static_configs: [{targets: ['127.0.0.1:$web->{port}']}]};

	append_to_file("$dir/prometheus.yml", qq{
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
$rules
$jobs
});
	$self->{harness} = IPC::Run::start(
		[
			'prometheus', "--config.file=$dir/prometheus.yml",
			"--storage.tsdb.path=$data", '--storage.tsdb.retention.time=100y',
			"--web.listen-address=127.0.0.1:$self->{port}"
		],
		'<', \undef, '>', "$dir/log", '2>&1');
	push @started, $self->{harness};
	return bless $self, 'TachoMetrics::Prometheus';
}

# The result of a query, or of its path below /api/v1. Dies on an error.
sub query
{
	my ($self, $expression, $path) = @_;
	my $form = HTTP::Tiny->new->www_form_urlencode({ query => $expression });
	my $answer = HTTP::Tiny->new(timeout => 60)
	  ->get("http://127.0.0.1:$self->{port}/api/v1/query?$form");

	# not ready yet
	return [] if $answer->{status} == 599 || $answer->{status} == 503;
	my $said = decode_json($answer->{content});
	die "$expression: $said->{error}" if $said->{status} ne 'success';
	return $said->{data}{result};
}

# Samples of a metric by time, summed over its labels, since it was last set
# back: a list of [time, value].
sub series
{
	my ($self, $selector) = @_;
	my %sums;

	for my $one (@{ query($self, "$selector\[10m]") })
	{
		$sums{ $_->[0] } += $_->[1] for @{ $one->{values} };
	}
	my @all = map { [ $_, $sums{$_} ] } sort { $a <=> $b } keys %sums;
	for my $at (reverse 1 .. $#all)
	{
		return @all[ $at .. $#all ] if $all[$at][1] < $all[ $at - 1 ][1];
	}
	return @all;
}

package TachoMetrics::Web;

sub get
{
	my ($self, $path, %headers) = @_;

	return HTTP::Tiny->new(timeout => 60)->get("http://127.0.0.1:$self->{port}$path",
		{ headers => { Authorization => "Bearer $token", %headers } });
}

sub post
{
	my ($self, $path, $form) = @_;

	return HTTP::Tiny->new(timeout => 60)->post_form("http://127.0.0.1:$self->{port}$path",
		$form, { headers => { Authorization => "Bearer $token" } });
}

sub stop
{
	my ($self) = @_;

	$self->{harness}->signal('TERM');
	$self->{harness}->finish;
	return;
}

package TachoMetrics::Prometheus;

sub stop { return TachoMetrics::Web::stop(@_) }

1;
