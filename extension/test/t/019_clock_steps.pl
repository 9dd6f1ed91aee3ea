# The clock is set back and forward by an hour while the server runs: ticks go
# on, none counts twice, and the history says when the clock was set.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

# The server's clock is the real one plus the seconds that a file holds. They
# are never positive: readers have the real clock, and know no future.
my $shim = <<'END';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static long
offset(void)
{
	static volatile long *shared;
	const char *file = getenv("TEST_CLOCK");

	if (!shared && file)
	{
		int			fd = open(file, O_RDONLY);
		void	   *map = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);

		shared = map == MAP_FAILED ? NULL : map;
	}
	return shared ? *shared : 0;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	static int	(*real) (clockid_t, struct timespec *);
	int			result;

	if (!real)
		real = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, t);
	if (clock == CLOCK_REALTIME)
		t->tv_sec += offset();
	return result;
}

int
gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
END

my $node = tacho_cluster('clock', start => 0, interval => '50ms', conf => 'tacho.statements_save_interval = 100ms');
my $dir = $node->basedir;
append_to_file("$dir/clock.c", $shim);
chomp(my $cc = qx{"$ENV{PG_CONFIG}" --cc});
plan skip_all => "no compiler \"$cc\" here"
  if system("$cc -shared -fPIC -o '$dir/clock.so' '$dir/clock.c' -ldl 2>'$dir/cc.log'") != 0;

sub set_clock
{
	my ($seconds) = @_;

	open my $file, '+<:raw', "$dir/offset" or die "open: $!";
	print $file pack('q', $seconds);
	close $file or die "close: $!";
	return;
}

# Waits until the statistics of statements are saved once more.
sub is_saved
{
	my $file = $node->data_dir . '/pg_stat_tmp/tacho_statements.stat';
	my $inode = (stat $file)[1] // 0;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if ((stat $file)[1] // 0) != $inode;
		$node->safe_psql('postgres', 'SELECT 1');
		select undef, undef, undef, 0.1;
	}
	return 0;
}

append_to_file("$dir/offset", pack('q', -3600));
{
	local $ENV{LD_PRELOAD} = "$dir/clock.so";
	local $ENV{TEST_CLOCK} = "$dir/offset";
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
my $session = tacho_session($node, app => 'seen');
$session->send('SELECT pg_sleep(100000)');
my $rows = metric($node, 'rows_taken');
ok(wait_for_metric($node, 'rows_taken', "value::bigint >= $rows + 10"), 'the first sample of the session is taken');

# Back, to where it was, forward, and back again, by an hour each.
for my $step (-7200, -3600, 0, -3600)
{
	set_clock($step);
	my $ticks = metric($node, 'ticks_taken');
	ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 30"),
		"ticks go on with the clock at $step s");
	ok(is_saved(), "statistics are saved with the clock at $step s");
}
$node->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'seen'});
$session->finish;
ok(wait_until_written($node), 'no frame waits for the writer');
is(metric($node, 'recording'), 'on', 'recording is on after the clock steps');
is(metric($node, 'frames_lost'), '0', 'no frame is lost by the clock steps');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');
my $missed = metric($node, 'ticks_missed');

is( $node->safe_psql('postgres', q{
		SELECT string_agg(m[1] || ' ' || (abs(m[2]::numeric - 3600) < 10)::text, ', ' ORDER BY m[1])
		FROM tacho.markers(since => '2000-01-01'),
		  regexp_match(detail, '^the wall clock went (back|forward) by ([0-9.]+) s$') m
		WHERE kind = 'clock step'}),
	'back true, back true, forward true, forward true', 'each step of the clock is marked');

# The same before and after the files are sealed.
for my $when ('as written', 'after a restart')
{
	is( $node->safe_psql('postgres', qq{
			WITH s AS (
			  SELECT tick, weight_ms FROM tacho.samples(since => '2000-01-01',
			    application => 'seen', n => null))
			SELECT count(*) = count(DISTINCT tick), sum(weight_ms) = 50 * count(*),
			  max(tick) - min(tick) + 1 - count(*) BETWEEN 0 AND $missed,
			  count(*) >= 110
			FROM s}),
		't|t|t|t', "no tick counts twice, none is left out, $when");
	next if $when ne 'as written';

	# Ahead by a year, which is as long as history is kept, and back: nothing
	# is deleted.
	for my $step (365 * 86400 - 3600, -3600)
	{
		set_clock($step);
		my $ticks = metric($node, 'ticks_taken');
		ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 30"),
			"ticks go on with the clock at $step s");
	}
	ok(wait_until_written($node), 'no frame waits for the writer after the step back');
	$node->restart;
}
is( $node->safe_psql('postgres', q{
		SELECT round(m[1]::numeric / 3600, 2)
		FROM tacho.markers(since => '2000-01-01'),
		  regexp_match(detail, '^the wall clock went back by ([0-9.]+) s$') m
		WHERE kind = 'clock step' AND m[1]::numeric > 86400}),
	'8760.00', 'the step back is marked, the step ahead has a later time');
$node->stop;

done_testing();
