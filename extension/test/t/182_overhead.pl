# overhead() shows the costs of tacho, in figures that agree with each other.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('overhead', conf => "tacho.server_interval = 200ms\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

ok(wait_for_metric($node, 'ticks_taken', 'value::int >= 20'), 'ticks are taken');
ok(wait_for_metric($node, 'server_readings', 'value::int >= 2'),
	'the server measures its own cost');
wait_until_written($node);
my $sent = metric($node, 'bytes_made');
my %relation = (
	'all figures are known' => q{bool_and(value IS NOT NULL OR metric = 'bytes_written')},
	'nothing is negative' => 'min(value) >= 0',
	'an hour is that many times what passed' =>
	  q{abs(max(value) FILTER (WHERE metric = 'sampler_cpu_per_hour')
		- max(value) FILTER (WHERE metric = 'sampler_cpu') * 3600000000
		/ max(value) FILTER (WHERE metric = 'sampler_elapsed')) <= 1},
	'the average is the sum by the number' =>
	  q{max(value) FILTER (WHERE metric = 'tick_cpu_avg')
		= div(max(value) FILTER (WHERE metric = 'ticks_cpu'),
			max(value) FILTER (WHERE metric = 'ticks'))},
	'ticks and readings are part of what the sampler used' =>
	  q{sum(value) FILTER (WHERE metric IN ('ticks_cpu', 'server_readings_cpu'))
		<= max(value) FILTER (WHERE metric = 'sampler_cpu')},
	'quantiles ascend' =>
	  q{array_agg(value ORDER BY metric) FILTER (WHERE metric IN ('tick_cpu_p50', 'tick_cpu_p90', 'tick_cpu_p99'))
		= array_agg(value ORDER BY value) FILTER (WHERE metric IN ('tick_cpu_p50', 'tick_cpu_p90', 'tick_cpu_p99'))
		AND max(value) FILTER (WHERE metric = 'tick_cpu_p99')
		<= max(value) FILTER (WHERE metric = 'tick_cpu_max')},
	'the slowest tick is at most all of them, to a quarter octave' =>
	  q{max(value) FILTER (WHERE metric = 'tick_cpu_max')
		<= 1.1 * max(value) FILTER (WHERE metric = 'ticks_cpu')},
	'shared memory is what the server has allocated' =>
	  q{sum(value) FILTER (WHERE metric LIKE 'shared_memory: %')
		= (SELECT sum(allocated_size) FROM pg_shmem_allocations WHERE name LIKE 'tacho%')},
	'bytes sent go on from what the status said' =>
	  "max(value) FILTER (WHERE metric = 'bytes_sent') >= $sent",
	'the writer uses CPU and memory' =>
	  q{min(value) FILTER (WHERE metric = 'writer_memory') > 0},
);
for my $name (sort keys %relation)
{
	is( sql("WITH o AS MATERIALIZED (SELECT * FROM tacho.overhead()) SELECT $relation{$name} FROM o"),
		't', $name);
}

# The kernel has the same figures: each lies between the kernel's values before and
# after. The sampler reports its own at the end of a tick.
sub figure { return sql("SELECT value FROM tacho.overhead() WHERE metric = '$_[0]'") }

sub ticks_pass
{
	my $ticks = metric($node, 'ticks_taken') + 2;
	return wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks");
}

# Time on a CPU in microseconds.
sub on_cpu { return int((split / /, slurp_file("/proc/$_[0]/schedstat"))[0] / 1000) }

# User and system time in microseconds, in steps of the kernel's clock.
sub used
{
	my @fields = split / /, slurp_file("/proc/$_[0]/stat") =~ s/^.*\) //sr;
	chomp(my $ticks = `getconf CLK_TCK`);
	return ($fields[11] + $fields[12]) * 1_000_000 / $ticks;
}

sub written { return slurp_file("/proc/$_[0]/io") =~ /^write_bytes: (\d+)/m ? $1 : undef }

sub is_between
{
	my ($name, $what, $of) = @_;
	my $before = $of->();
	ticks_pass();
	my $value = figure($name);
	ticks_pass();
	my $after = $of->();

	note "$name: $before <= $value <= $after";
	cmp_ok($value, '>=', $before, "$what does not become less");
	return cmp_ok($value, '<=', $after, "$what is at most the value after it");
}

SKIP:
{
	skip 'no /proc here', 6 unless -r '/proc/self/schedstat' && -r '/proc/self/io';
	my ($sampler, $writer) = map { metric($node, $_) } qw(sampler_pid writer_pid);
	is_between('sampler_cpu', 'CPU time of the sampler', sub { on_cpu($sampler) });
	is_between('writer_cpu', 'CPU time of the writer', sub { used($writer) });
	is_between('bytes_written', 'bytes the writer has written', sub { written($writer) });
}
sql('CREATE ROLE watcher; GRANT pg_read_all_stats TO watcher');
is(sql('SET ROLE watcher; SELECT count(*) > 20 FROM tacho.overhead()'),
	't', 'members of pg_read_all_stats may ask tacho.overhead()');
sql('CREATE ROLE nobody');
my (undef, undef, $error) =
  $node->psql('postgres', 'SET ROLE nobody; SELECT * FROM tacho.overhead()');
like($error, qr/permission denied for function overhead/, 'other roles may not ask tacho.overhead()');
$node->stop;

done_testing();
