/*
 * usage.c
 *	  What one planning or execution used: snapshots before and after.
 *
 * Works on memory of the caller; called only by hooks. See usage.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/errcodes.h"

#include "core/hot.h"
#include "core/settings.h"
#include "statements/usage.h"

/* between two samples; on average one of ONE_OF_MOST, see draw_sample() */
#define DISTANCE_LEAST 16
#define DISTANCE_MOST 112
StaticAssertDecl((DISTANCE_LEAST + DISTANCE_MOST) / 2 == ONE_OF_MOST,
				 "the mean distance is that of the least frequent samples");
StaticAssertDecl(DISTANCE_LEAST >= ONE_OF_MOST / ONE_OF_LEAST,
				 "no execution is two samples");

/* BufferUsage begins with numbers of blocks, shared ones first; times follow */
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

/* adds to a counter of a group that may not have been filled yet */
#define ADD(delta, filled, member, value) \
	((delta)->counters.member = \
	 ((filled) ? (delta)->counters.member : 0) + (value))

/* ---- operating system ---- */

/* A number from 0 to `most`. */
static inline int
random_to(int most)
{
	return pg_prng_uint64_range(&pg_global_prng_state, 0, most);
}

/*
 * How far the next sample is from where a session begins: anywhere between two
 * samples, which is more often a wide gap than a narrow one. So a session of
 * one execution has as good a chance as each of a long one.
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
 * For a short execution of which one of `one_of` is measured: nothing most of
 * the time. Samples lie on a line at random distances, so that no pattern of
 * the client is met; an execution takes ONE_OF_MOST / one_of of it. rusage and
 * the wait for a CPU are measured in turns: no more than two system calls.
 */
static inline UsageDraw
draw_sample(int one_of)
{
	static HOT_DATA bool begun = false;
	static HOT_DATA int distance = 0;
	static HOT_DATA bool turn = false;
	int			taken = ONE_OF_MOST / one_of;

	distance -= taken;
	if (likely(distance >= 0))
		return (UsageDraw) {0, 0};
	if (!begun)
	{
		begun = true;
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
 * Nanoseconds this process has waited for a CPU, 0 when the kernel does not
 * say. The file stays open for the life of the process.
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

static double
timeval_ms(const struct timeval *from, const struct timeval *to)
{
	return (to->tv_sec - from->tv_sec) * 1000.0 +
		(to->tv_usec - from->tv_usec) / 1000.0;
}

/* Whether another process has had the CPU in between. */
static inline bool
switched(const struct rusage *before, const struct rusage *after)
{
	return before->ru_nvcsw != after->ru_nvcsw ||
		before->ru_nivcsw != after->ru_nivcsw;
}

/*
 * Who has kept the CPU has not waited for it: the file, which costs three times
 * as much as getrusage(), is not read again then.
 */
static void
add_cpu(const UsageStart *start, StatementDelta *delta)
{
	bool		filled = (delta->groups & GROUP_cpu) != 0;
	double		n = start->draw.rusage;
	double		waited = 0;
	const struct rusage *before = &start->rusage;
	struct rusage after;
	bool		known = n != 0 && getrusage(RUSAGE_THREAD, &after) == 0;

	if (start->draw.run_queue && (!known || switched(before, &after)))
		waited = (run_queue_ns() - start->run_queue_ns) / 1e6;
	ADD(delta, filled, run_queue_time, waited * start->draw.run_queue);
	if (!known)
	{
		after = (struct rusage) {0};
		before = &after;
	}
	ADD(delta, filled, user_time, n * timeval_ms(&before->ru_utime, &after.ru_utime));
	ADD(delta, filled, system_time, n * timeval_ms(&before->ru_stime, &after.ru_stime));
	ADD(delta, filled, read_bytes, n * (after.ru_inblock - before->ru_inblock) * BLOCK_BYTES);
	ADD(delta, filled, written_bytes, n * (after.ru_oublock - before->ru_oublock) * BLOCK_BYTES);
	ADD(delta, filled, minor_faults, n * (after.ru_minflt - before->ru_minflt));
	ADD(delta, filled, major_faults, n * (after.ru_majflt - before->ru_majflt));
	ADD(delta, filled, voluntary_switches, n * (after.ru_nvcsw - before->ru_nvcsw));
	ADD(delta, filled, involuntary_switches, n * (after.ru_nivcsw - before->ru_nivcsw));
	ADD(delta, filled, n_sampled, 0);
	delta->groups |= GROUP_cpu;
}

/* ---- server ---- */

/* Whether any of the words `from` … `to` - 1 of BufferUsage has changed. */
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

/* Blocks of temporary tables and files. */
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

/* All but the numbers of shared blocks. */
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
	ADD(delta, filled, wal_buffers_full,
		compat_wal_buffers_full(&pgWalUsage) - compat_wal_buffers_full(before));
	delta->groups |= GROUP_wal;
}

pg_attribute_hot void
usage_begin(UsageStart *start, UsageDraw draw)
{
	start->draw = draw;
	start->buffers = pgBufferUsage;
	start->wal = pgWalUsage;
	if (unlikely(draw.rusage != 0) && getrusage(RUSAGE_THREAD, &start->rusage) != 0)
		start->draw.rusage = 0;
	if (unlikely(draw.run_queue != 0))
		start->run_queue_ns = run_queue_ns();
	INSTR_TIME_SET_CURRENT(start->time);
}

pg_attribute_hot double
usage_end(const UsageStart *start, StatementDelta *delta)
{
	instr_time	duration;

	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start->time);
	if (unlikely(start->draw.rusage != 0 || start->draw.run_queue != 0))
		add_cpu(start, delta);
	if (used_between(&start->buffers, 0, BLOCK_COUNTERS))
	{
		add_buffers(&start->buffers, delta);
		if (unlikely(used_between(&start->buffers, SHARED_COUNTERS, BUFFER_COUNTERS)))
			add_rare_buffers(&start->buffers, delta);
	}
	/* whatever else WAL counts, it counts with a record */
	if (start->wal.wal_records != pgWalUsage.wal_records)
		add_wal(&start->wal, delta);
	return INSTR_TIME_GET_MILLISEC(duration);
}

/* ---- the whole ---- */

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
		delta->histogram_bucket = histogram_bucket(ms);
	if (delta->groups & GROUP_cpu)
		counters->n_sampled = draw.rusage != 0 ? 1 : 0;
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
	delta->groups |= GROUP_plan;
}

void
usage_failed(StatementDelta *delta, int sqlstate)
{
	bool		cancelled = sqlstate == ERRCODE_QUERY_CANCELED;

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
