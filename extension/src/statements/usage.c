/*
 * usage.c
 *	  Resources that one planning or execution used: differences of snapshots.
 *
 * Works on memory of the caller; only hooks call it. See usage.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/errcodes.h"

#include "core/hot.h"
#include "core/settings.h"
#include "statements/usage.h"

/* distance between two samples; on average ONE_OF_MOST, see draw_sample() */
#define DISTANCE_LEAST 16
#define DISTANCE_MOST 112
StaticAssertDecl((DISTANCE_LEAST + DISTANCE_MOST) / 2 == ONE_OF_MOST,
				 "the mean distance is ONE_OF_MOST");
StaticAssertDecl(DISTANCE_LEAST >= ONE_OF_MOST / ONE_OF_LEAST,
				 "no execution is two samples");

/* BufferUsage begins with block counts, shared blocks first; times follow */
#define SHARED_COUNTERS 4
#define BLOCK_COUNTERS 10
#define BUFFER_COUNTERS ((int) (sizeof(BufferUsage) / sizeof(int64)))
StaticAssertDecl(offsetof(BufferUsage, shared_blks_written) ==
				 (SHARED_COUNTERS - 1) * sizeof(int64),
				 "shared blocks come first in BufferUsage");
StaticAssertDecl(offsetof(BufferUsage, temp_blks_written) ==
				 (BLOCK_COUNTERS - 1) * sizeof(int64),
				 "numbers of blocks come first in BufferUsage");

#define BLOCK_BYTES 512			/* unit of ru_inblock, ru_oublock */

/* adds to a counter whose group may not be filled yet */
#define ADD(delta, filled, member, value) \
	((delta)->counters.member = \
	 ((filled) ? (delta)->counters.member : 0) + (value))

/* the last reading, and whether there was one */
static HOT_DATA UsageReading latest = {0};
static HOT_DATA bool begun = false;

static inline bool
is_drawn(UsageDraw draw)
{
	return draw.rusage != 0 || draw.run_queue != 0;
}

/* ---- operating system ---- */

static bool read_usage(void);

/* A random number from 0 to `most`. */
static inline int
random_to(int most)
{
	return pg_prng_uint64_range(&pg_global_prng_state, 0, most);
}

/*
 * Distance from the begin of a session to its first sample. The begin lies
 * anywhere between two samples, and more often in a wide gap than in a narrow
 * one. So a session of one execution has the same chance as each execution of
 * a long session.
 */
static int
first_distance(void)
{
	for (;;)
	{
		int			place = random_to(DISTANCE_MOST - 1);

		if (place < DISTANCE_LEAST + random_to(DISTANCE_MOST - DISTANCE_LEAST))
			return place;
	}
}

/*
 * Draws a short execution with probability 1 / `one_of`. Samples lie on a line
 * at random distances, so that they cannot follow a pattern of the client. An
 * execution advances by ONE_OF_MOST / one_of on this line. To save system
 * calls, samples measure rusage and the wait for a CPU in turns. So each
 * counts for 2 * one_of executions.
 */
static inline UsageDraw
draw_sample(int one_of)
{
	static HOT_DATA int distance = 0;
	static HOT_DATA bool turn = false;
	int			taken = ONE_OF_MOST / one_of;

	distance -= taken;
	if (likely(distance >= 0))
		return (UsageDraw) {0, 0};
	if (!begun)
	{
		begun = true;
		(void) read_usage();
		turn = random_to(1);
		distance = first_distance() - taken;
		if (distance >= 0)
			return (UsageDraw) {0, 0};
	}
	distance += DISTANCE_LEAST + random_to(DISTANCE_MOST - DISTANCE_LEAST);
	turn = !turn;
	return turn ? (UsageDraw) {.rusage = 2 * one_of}
		: (UsageDraw) {.run_queue = 2 * one_of};
}

pg_attribute_hot UsageDraw
usage_draw(uint64 query_id, bool toplevel)
{
	int			one_of = 1;

	if (tacho_statements_cpu == STATEMENTS_CPU_OFF)
		return (UsageDraw) {0, 0};
	if (tacho_statements_cpu == STATEMENTS_CPU_SAMPLED)
		one_of = statements_one_of(query_id, toplevel);
	return one_of == 1 ? (UsageDraw) {1, 1} : draw_sample(one_of);
}

/*
 * Nanoseconds that this process has waited for a CPU, 0 if the kernel does
 * not count them. The file stays open for the life of the process.
 */
static int64
run_queue_ns(void)
{
	static int	fd = -2;
	static int	owner = 0;
	char		line[64];
	int			n;
	char	   *wait;

	if (fd == -2 || owner != MyProcPid)
	{
		fd = -1;
		owner = MyProcPid;
		if (AcquireExternalFD())
		{
			fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				ReleaseExternalFD();
		}
	}
	if (fd < 0)
		return 0;
	n = pread(fd, line, sizeof(line) - 1, 0);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	wait = strchr(line, ' ');	/* second number of three */
	return wait ? strtoll(wait, NULL, 10) : 0;
}

static int64
timeval_us(const struct timeval *time)
{
	return time->tv_sec * INT64CONST(1000000) + time->tv_usec;
}

/* Reads the counters of the operating system; false if that fails. */
static bool
read_usage(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		return false;
	latest = (UsageReading) {
		.user_us = timeval_us(&usage.ru_utime),
		.system_us = timeval_us(&usage.ru_stime),
		.read_blocks = usage.ru_inblock,
		.written_blocks = usage.ru_oublock,
		.minor_faults = usage.ru_minflt,
		.major_faults = usage.ru_majflt,
		.voluntary_switches = usage.ru_nvcsw,
		.involuntary_switches = usage.ru_nivcsw,
	};
	return true;
}

/* True if this process has lost its CPU since that reading. */
static inline bool
switched(const UsageReading *before)
{
	return before->voluntary_switches != latest.voluntary_switches ||
		before->involuntary_switches != latest.involuntary_switches;
}

/*
 * Returns which fraction (0 to 1) of the CPU time since the reading `before`
 * belongs to a piece of an execution. The piece has just ended and took `ms`.
 * The rest belongs to executions after that reading that ended without a
 * reading of their own. A piece cannot have used more CPU time than its
 * duration.
 */
static double
cpu_share(const UsageReading *before, double ms)
{
	double		since_ms = (latest.user_us - before->user_us +
							latest.system_us - before->system_us) / 1000.0;
	double		own_ms = Max(since_ms - before->unread_ms, 0);

	return since_ms > 0 ? Min(own_ms, ms) / since_ms : 0;
}

/* Adds the counters since the reading before a piece of `ms`. */
static void
add_usage(StatementDelta *delta, const UsageReading *before, double ms)
{
	bool		filled = (delta->groups & GROUP_cpu) != 0;
	double		share = cpu_share(before, ms);

#define SINCE(member) (latest.member - before->member)
	ADD(delta, filled, user_time, share * SINCE(user_us) / 1000.0);
	ADD(delta, filled, system_time, share * SINCE(system_us) / 1000.0);
	ADD(delta, filled, read_bytes, (int64) SINCE(read_blocks) * BLOCK_BYTES);
	ADD(delta, filled, written_bytes, (int64) SINCE(written_blocks) * BLOCK_BYTES);
	ADD(delta, filled, minor_faults, SINCE(minor_faults));
	ADD(delta, filled, voluntary_switches, SINCE(voluntary_switches));
	ADD(delta, filled, involuntary_switches, SINCE(involuntary_switches));
	ADD(delta, filled, sampled_exec_time, ms);
	if (unlikely(latest.major_faults != before->major_faults))
	{
		filled = (delta->groups & GROUP_faults) != 0;
		ADD(delta, filled, major_faults, SINCE(major_faults));
		delta->groups |= GROUP_faults;
	}
#undef SINCE
}

/*
 * Ends a piece that was drawn or was long, or after which the executions
 * since the last reading have taken LONG_MS. The last case is for the next
 * long execution, which then has a recent reading before it. A process that
 * kept its CPU has not waited for it. The file with the wait is then not
 * read, because that costs three times as much as getrusage().
 */
static pg_noinline void
end_measured(const UsageStart *start, double ms, StatementDelta *delta)
{
	const UsageDraw draw = start->draw;
	bool		wanted = draw.rusage != 0 || ms >= LONG_MS;
	bool		filled = (delta->groups & GROUP_cpu) != 0;
	bool		known;
	double		waited = 0;

	if (tacho_statements_cpu == STATEMENTS_CPU_OFF)
	{
		begun = false;
		latest.unread_ms = 0;
		return;
	}
	known = (wanted || latest.unread_ms >= LONG_MS) && read_usage();
	if (!wanted && draw.run_queue == 0)
		return;
	if (draw.run_queue != 0 && (!known || switched(&start->reading)))
		waited = (run_queue_ns() - start->run_queue_ns) / 1e6;
	ADD(delta, filled, run_queue_time, waited);
	ADD(delta, filled, n_sampled, 0);
	if (wanted && known)
		add_usage(delta, &start->reading, ms);
	else
		add_usage(delta, &latest, 0);
	delta->groups |= GROUP_cpu;
}

/* ---- server ---- */

/* True if the words `from` … `to` - 1 of BufferUsage have changed. */
static inline bool
used_between(const BufferUsage *before, int from, int to)
{
	return memcmp((const int64 *) before + from,
				  (const int64 *) &pgBufferUsage + from,
				  (to - from) * sizeof(int64)) != 0;
}

#define ADD_BLOCKS(member) \
	ADD(delta, filled, member, after->member - before->member)

static pg_attribute_hot void
add_buffers(const BufferUsage *before, StatementDelta *delta)
{
	const BufferUsage *after = &pgBufferUsage;
	bool		filled = (delta->groups & GROUP_buffers) != 0;

	ADD_BLOCKS(shared_blks_hit);
	ADD_BLOCKS(shared_blks_read);
	ADD_BLOCKS(shared_blks_dirtied);
	ADD_BLOCKS(shared_blks_written);
	delta->groups |= GROUP_buffers;
}

/* Adds blocks of temporary tables and files. */
static void
add_other_blocks(const BufferUsage *before, StatementDelta *delta)
{
	const BufferUsage *after = &pgBufferUsage;
	bool		filled = (delta->groups & GROUP_other_blocks) != 0;

	ADD_BLOCKS(local_blks_hit);
	ADD_BLOCKS(local_blks_read);
	ADD_BLOCKS(local_blks_dirtied);
	ADD_BLOCKS(local_blks_written);
	ADD_BLOCKS(temp_blks_read);
	ADD_BLOCKS(temp_blks_written);
	delta->groups |= GROUP_other_blocks;
}

static void
add_io_time(const BufferUsage *before, StatementDelta *delta)
{
	BufferUsage difference;
	bool		filled = (delta->groups & GROUP_io_time) != 0;

	memset(&difference, 0, sizeof(difference));
	BufferUsageAccumDiff(&difference, &pgBufferUsage, before);
	ADD(delta, filled, shared_blk_read_time,
		INSTR_TIME_GET_MILLISEC(COMPAT_SHARED_READ_TIME(&difference)));
	ADD(delta, filled, shared_blk_write_time,
		INSTR_TIME_GET_MILLISEC(COMPAT_SHARED_WRITE_TIME(&difference)));
	ADD(delta, filled, local_blk_read_time, compat_local_read_time(&difference));
	ADD(delta, filled, local_blk_write_time, compat_local_write_time(&difference));
	ADD(delta, filled, temp_blk_read_time,
		INSTR_TIME_GET_MILLISEC(difference.temp_blk_read_time));
	ADD(delta, filled, temp_blk_write_time,
		INSTR_TIME_GET_MILLISEC(difference.temp_blk_write_time));
	delta->groups |= GROUP_io_time;
}

/* Adds all counters of BufferUsage except the counts of shared blocks. */
static void
add_rare_buffers(const BufferUsage *before, StatementDelta *delta)
{
	if (used_between(before, SHARED_COUNTERS, BLOCK_COUNTERS))
		add_other_blocks(before, delta);
	if (used_between(before, BLOCK_COUNTERS, BUFFER_COUNTERS))
		add_io_time(before, delta);
}

static void
add_wal(const WalUsage *before, StatementDelta *delta)
{
	bool		filled = (delta->groups & GROUP_wal) != 0;

	ADD(delta, filled, wal_records, pgWalUsage.wal_records - before->wal_records);
	ADD(delta, filled, wal_fpi, pgWalUsage.wal_fpi - before->wal_fpi);
	ADD(delta, filled, wal_bytes, pgWalUsage.wal_bytes - before->wal_bytes);
	delta->groups |= GROUP_wal;
	if (compat_wal_buffers_full(&pgWalUsage) != compat_wal_buffers_full(before))
	{
		filled = (delta->groups & GROUP_wal_full) != 0;
		ADD(delta, filled, wal_buffers_full,
			compat_wal_buffers_full(&pgWalUsage) - compat_wal_buffers_full(before));
		delta->groups |= GROUP_wal_full;
	}
}

static pg_noinline void
begin_measured(UsageStart *start)
{
	if (start->draw.rusage != 0 && !read_usage())
		start->draw.rusage = 0;
	if (start->draw.run_queue != 0)
		start->run_queue_ns = run_queue_ns();
}

pg_attribute_hot void
usage_begin(UsageStart *start, UsageDraw draw)
{
	start->draw = draw;
	if (unlikely(is_drawn(draw)))
		begin_measured(start);
	start->reading = latest;
	start->buffers = pgBufferUsage;
	start->wal = pgWalUsage;
	INSTR_TIME_SET_CURRENT(start->time);
}

pg_attribute_hot double
usage_end(const UsageStart *start, StatementDelta *delta)
{
	instr_time	duration;
	double		ms;

	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start->time);
	ms = INSTR_TIME_GET_MILLISEC(duration);
	latest.unread_ms += ms;
	if (unlikely(latest.unread_ms >= LONG_MS || is_drawn(start->draw)))
		end_measured(start, ms, delta);
	if (used_between(&start->buffers, 0, BLOCK_COUNTERS))
	{
		add_buffers(&start->buffers, delta);
		if (unlikely(used_between(&start->buffers, SHARED_COUNTERS, BUFFER_COUNTERS)))
			add_rare_buffers(&start->buffers, delta);
	}
	/* all WAL counters change only together with wal_records */
	if (start->wal.wal_records != pgWalUsage.wal_records)
		add_wal(&start->wal, delta);
	return ms;
}

/* ---- the whole ---- */

/* Counts an execution of LONG_FIRST_US or more in both histograms. */
static pg_noinline void
count_long(StatementDelta *delta, double us)
{
	int			bucket = ilogb(us) - (HISTOGRAM_BUCKETS - 1);

	delta->histogram_bucket = HISTOGRAM_BUCKETS - 1;
	memset(delta->counters.histogram_long, 0,
		   sizeof(delta->counters.histogram_long));
	delta->counters.histogram_long[Min(bucket, LONG_BUCKETS - 1)] = 1;
	delta->groups |= GROUP_long;
}

static inline void
count_duration(StatementDelta *delta, double us)
{
	if (unlikely(us >= LONG_FIRST_US))
		count_long(delta, us);
	else
		delta->histogram_bucket = histogram_bucket(us);
}

uint64
usage_utility_rows(const QueryCompletion *completion)
{
	if (completion == NULL)
		return 0;
	switch (completion->commandTag)
	{
		case CMDTAG_COPY:
		case CMDTAG_FETCH:
		case CMDTAG_SELECT:
		case CMDTAG_REFRESH_MATERIALIZED_VIEW:
			return completion->nprocessed;
		default:
			return 0;
	}
}

pg_attribute_hot void
usage_executed(StatementDelta *delta, double ms, uint64 rows, UsageDraw draw)
{
	Counters   *counters = &delta->counters;

	counters->calls = 1;
	counters->total_exec_time = ms;
	counters->min_exec_time = ms;
	counters->max_exec_time = ms;
	counters->square_exec_time = ms * ms;
	counters->rows = rows;
	delta->groups |= GROUP_exec;
	if (tacho_statements_histogram)
		count_duration(delta, ms * 1000.0);
	if (unlikely((delta->groups & GROUP_cpu) != 0))
	{
		counters->n_sampled = counters->sampled_exec_time > 0 ? 1 : 0;
		delta->weight = draw;
		if (ms >= LONG_MS)		/* every such execution is measured */
			delta->weight.rusage = 1;
	}
}

void
usage_planned(StatementDelta *delta, double ms)
{
	Counters   *counters = &delta->counters;

	counters->plans = 1;
	counters->total_plan_time = ms;
	counters->min_plan_time = ms;
	counters->max_plan_time = ms;
	counters->square_plan_time = ms * ms;
	delta->groups &= ~(GROUP_cpu | GROUP_faults);	/* only executions have them */
	delta->groups |= GROUP_plan;
}

/* Moves the counters of an execution to the counters of failed ones. */
static void
move_to_failed(StatementDelta *delta, double ms)
{
	Counters   *counters = &delta->counters;
	uint32		groups = delta->groups;

#define MOVE(group, member) \
	(counters->failed_##member = (groups & GROUP_##group) ? counters->member : 0)
	counters->failed_exec_time = ms;
	counters->failed_cpu_time = (groups & GROUP_cpu)
		? counters->user_time + counters->system_time : 0;
	MOVE(buffers, shared_blks_hit);
	MOVE(buffers, shared_blks_read);
	MOVE(buffers, shared_blks_dirtied);
	MOVE(buffers, shared_blks_written);
	MOVE(other_blocks, local_blks_hit);
	MOVE(other_blocks, local_blks_read);
	MOVE(other_blocks, local_blks_dirtied);
	MOVE(other_blocks, local_blks_written);
	MOVE(other_blocks, temp_blks_read);
	MOVE(other_blocks, temp_blks_written);
	MOVE(wal, wal_records);
	MOVE(wal, wal_bytes);
#undef MOVE
	delta->groups = ms > 0 ? GROUP_failed : 0;
}

void
usage_failed(StatementDelta *delta, double ms, int sqlstate)
{
	bool		cancelled = sqlstate == ERRCODE_QUERY_CANCELED;

	move_to_failed(delta, ms);
	delta->counters.errors = cancelled ? 0 : 1;
	delta->counters.cancellations = cancelled ? 1 : 0;
	delta->sqlstate = sqlstate;
	delta->groups |= GROUP_error;
}

static void
add_jit(StatementDelta *delta, const JitInstrumentation *jit)
{
	Counters   *counters = &delta->counters;

#define JIT_STEP(step, ms) \
	(counters->jit_##step##_time = (ms), \
	 counters->jit_##step##_count = counters->jit_##step##_time != 0)
	counters->jit_functions = jit->created_functions;
	counters->jit_generation_time = INSTR_TIME_GET_MILLISEC(jit->generation_counter);
	JIT_STEP(inlining, INSTR_TIME_GET_MILLISEC(jit->inlining_counter));
	JIT_STEP(optimization, INSTR_TIME_GET_MILLISEC(jit->optimization_counter));
	JIT_STEP(emission, INSTR_TIME_GET_MILLISEC(jit->emission_counter));
	JIT_STEP(deform, COMPAT_JIT_DEFORM_TIME(jit));
#undef JIT_STEP
	delta->groups |= GROUP_jit;
}

pg_attribute_hot void
usage_executor(StatementDelta *delta, const QueryDesc *query)
{
	const EState *estate = query->estate;
	int			workers = compat_workers_to_launch(estate);
	bool		generic = compat_plan_is_generic(query->plannedstmt);
	bool		custom = compat_plan_is_custom(query->plannedstmt);

	if (estate->es_jit)
		add_jit(delta, &estate->es_jit->instr);
	if (workers > 0)
	{
		delta->counters.parallel_workers_to_launch = workers;
		delta->counters.parallel_workers_launched = compat_workers_launched(estate);
		delta->groups |= GROUP_workers;
	}
	if (generic || custom)
	{
		delta->counters.generic_plan_calls = generic;
		delta->counters.custom_plan_calls = custom;
		delta->groups |= GROUP_origin;
	}
}
