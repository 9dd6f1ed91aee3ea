# The parts of the sampler that need no server: tick numbers, the budget, figures of the
# machine and its cgroups, and starting programs (also if the system cannot close their
# descriptors). The eviction of entries. The scan of entries that others write. The
# status of the sampler, which blocks no process. The turns of plans.
use strict;
use warnings;
use File::Path qw(make_path);
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my $dir = PostgreSQL::Test::Utils::tempdir();

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }

# Writes the files of a machine: name => content.
sub machine
{
	my ($name, %files) = @_;

	while (my ($path, $content) = each %files)
	{
		my ($in) = "$dir/$name$path" =~ m{(.*)/};
		make_path($in);
		append_to_file("$dir/$name$path", "$content\n");
	}
	return;
}

machine('v2',
	'/proc/self/cgroup' => '0::/system.slice/postgresql.service',
	'/sys/fs/cgroup/system.slice/postgresql.service/cpu.max' => '150000 100000',
	'/sys/fs/cgroup/system.slice/cpu.max' => 'max 100000',
	'/sys/fs/cgroup/system.slice/postgresql.service/cpu.stat' =>
	  "usage_usec 5\nnr_throttled 3\nthrottled_usec 777",
	'/proc/loadavg' => '1.50 0.75 0.25 3/456 7890',
	'/proc/stat' => "cpu  100 10 1000 4000 500 20 3 9 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0",
	'/proc/meminfo' =>
	  "MemTotal:  8000 kB\nMemFree: 1 kB\nMemAvailable: 5000 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB",
	'/proc/pressure/cpu' =>
	  "some avg10=0.00 avg60=0.00 avg300=0.00 total=111\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
	'/proc/pressure/memory' =>
	  "some avg10=0.00 avg60=0.00 avg300=0.00 total=222\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=333",
	'/proc/42/stat' => '42 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 50 20 0 0',
	'/proc/42/statm' => '100 10 5 1 0 20 0',
	'/proc/42/io' => "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4096");
machine('v2_parent',
	'/proc/self/cgroup' => '0::/a/b',
	'/sys/fs/cgroup/a/b/cpu.max' => '200000 100000',
	'/sys/fs/cgroup/a/cpu.max' => '25000 50000',
	'/sys/fs/cgroup/cpu.max' => 'max 100000');
machine('v2_none',
	'/proc/self/cgroup' => '0::/',
	'/sys/fs/cgroup/cpu.max' => 'max 100000');
machine('v1',
	'/proc/self/cgroup' => "5:memory:/x\n4:cpu,cpuacct:/db\n0::/",
	'/sys/fs/cgroup/cpu/db/cpu.cfs_quota_us' => '250000',
	'/sys/fs/cgroup/cpu/db/cpu.cfs_period_us' => '100000',
	'/sys/fs/cgroup/cpu/db/cpu.stat' => "nr_periods 1\nthrottled_time 5000");
machine('v1_container',
	'/proc/self/cgroup' => '4:cpuacct,cpu:/docker/0123',
	'/sys/fs/cgroup/cpu/cpu.cfs_quota_us' => '25000',
	'/sys/fs/cgroup/cpu/cpu.cfs_period_us' => '100000');
machine('v1_none',
	'/proc/self/cgroup' => '4:cpu:/',
	'/sys/fs/cgroup/cpu/cpu.cfs_quota_us' => '-1',
	'/sys/fs/cgroup/cpu/cpu.cfs_period_us' => '100000');

my ($cc) = split ' ', config('--cc');

# Builds and runs a program of test/unit; each line it prints is a test.
sub program_tells
{
	my ($name, $options, @sources) = @_;

	system_or_bail($cc, '-std=gnu99', '-O1', '-w', '-o', "$dir/$name",
		'-I', "$root/src", '-I', config('--includedir-server'),
		split(' ', config('--cppflags')), split(' ', $options),
		"$root/test/unit/$name.c", map { "$root/src/$_.c" } @sources);
	my ($out, $err) = run_command([ "$dir/$name", $dir ]);
	is($err, '', "$name runs with $options");
	for my $line (split /\n/, $out)
	{
		my ($result, $test) = split / - /, $line, 2;
		is($result, 'ok', $test);
	}
	return;
}

# the program looks for it in its own directory
symlink(config('--pkglibdir') . '/tacho-parent', "$dir/tacho-parent") or die "no link: $!";
program_tells('units', $_, qw(sampler/budget core/host sampler/slot_clock core/spawner))
  for '', '-DTACHO_WITHOUT_CLOSEFROM';
program_tells($_, '') for qw(evict scan status turns);

done_testing();
