/*
 * recorder_statements.c
 *	  Every tacho.statements_interval the sampler walks over the statistics of
 *	  statements and records the counts of each entry since its last record.
 *
 * A pass begins when the wall clock enters another interval. It is spread
 * over turns of the sampler's loop, and each turn stops after TURN_US. All
 * rows of a pass have the time it began and the time since the pass before.
 * Its last row has no entry: it says that the pass was made. Before that row
 * the pass records the errors by SQLSTATE (error_counts.c). While the writer
 * is behind, no pass begins; the next pass then covers a longer time.
 *
 * Locking: statements_record() tries the lock of a partition, and
 * error_counts_take() the lock of the errors. Memory: the frame's; names in
 * their caches; 33 kB of errors.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/clocks.h"
#include "core/settings.h"
#include "history/dictionary.h"
#include "history/names.h"
#include "history/pending.h"
#include "history/writer.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"
#include "sampler/recorder_statements.h"
#include "statements/error_counts.h"
#include "statements/statements.h"

#define TURN_US			250
#define BATCH			32		/* rows between two readings of the clock */
#define ROWS_PER_FRAME	1000
#define TRIES			20		/* to take the errors in a pass */

typedef struct Pass
{
	bool		running;
	bool		discard;		/* counts so far are not recorded */
	uint32		slot;			/* next one */
	uint32		slots;
	UnixMs		time;			/* its begin */
	int64		boot_us;
	int64		elapsed_ms;		/* since the pass before */
	int			errors;			/* in errors[], -1 = not taken yet */
	int			error;			/* next one */
	int			tries;			/* to take the errors */
} Pass;

static Pass pass;
static ErrorCount errors[ERROR_PLACES + 1];
static int64 last_interval = -1;	/* number of the interval, by wall clock */

/*
 * Longest time since the last record, in ms. A sum over a longer time would
 * be useless, so it is not recorded.
 */
static int64
longest_ms(void)
{
	return Max(STATEMENTS_LONGEST_MS, 2 * tacho_statements_interval);
}

static void
begin_pass(int64 wall_us, int64 boot_us)
{
	int64		recorded_at = statements_recorded_at();
	int64		elapsed_ms = (boot_us - recorded_at) / 1000;

	pass = (Pass) {
		.running = true,
		.discard = recorded_at == 0 || elapsed_ms > longest_ms(),
		.slots = statements_slots(),
		.time = wall_us / 1000,
		.boot_us = boot_us,
		.elapsed_ms = Max(elapsed_ms, 1),
		.errors = -1,
	};
}

/* True when the wall clock has entered another interval. */
static bool
is_due(int64 wall_us)
{
	int64		number = wall_us / 1000 / tacho_statements_interval;
	bool		due = last_interval != -1 && number != last_interval;

	if (due && !writer_has_room())
		return false;
	last_interval = number;
	return due;
}

/*
 * Marks a reset. The history continues across it, so the marker explains why
 * the history differs from the statistics.
 */
static void
mark_reset(TimestampTz at, TimestampTz *seen, const char *detail)
{
	if (*seen != -1 && at != *seen)
		recorder_marker(MARKER_STATISTICS_RESET,
						(at + TACHO_EPOCH_OFFSET_US) / 1000, 0, 0, detail);
	*seen = at;
}

static void
mark_resets(void)
{
	static TimestampTz everything = -1; /* not read yet */
	static TimestampTz some = -1;

	mark_reset(statements_reset_at(), &everything,
			   "statistics of all statements were reset");
	mark_reset(statements_partial_reset_at(), &some,
			   "statistics of some statements were reset");
}

/* Column ids of the counters, in the order of a row's values. */
static const uint8 *
column_ids(void)
{
	static uint8 ids[HISTORY_COLUMNS];

	if (ids[0] == 0)
	{
		HistoryColumn columns[HISTORY_COLUMNS];

		counters_history_columns(columns);
		for (int i = 0; i < HISTORY_COLUMNS; i++)
			ids[i] = columns[i].id;
	}
	return ids;
}

static uint64
entry_id(const StatementKey *key)
{
	StatsEntryKey entry;

	memset(&entry, 0, sizeof(entry));
	entry.query_id = (int64) key->query_id;
	entry.user_oid = key->user_id;
	entry.user = processes_role_name(key->user_id);
	entry.database_oid = key->database_id;
	entry.database = processes_database_name(key->database_id);
	entry.toplevel = key->toplevel != 0;
	return dictionary_stats_entry(&entry);
}

/* Adds a row; `entry` is 0 for the last row of a pass. */
static int
add_row(Frame *frame, uint64 entry)
{
	Section    *section = frame_section(frame, TABLE_statement_stats);
	int			row = section_add(section);

	section_set(section, row, COL_statement_stats_time,
				frame_time(frame, pass.time));
	section_set(section, row, COL_statement_stats_elapsed_ms, pass.elapsed_ms);
	section_set(section, row, COL_statement_stats_entry, entry);
	return row;
}

static void
put_plan(Frame *frame, uint64 entry, const PlanIncrease *plan)
{
	Section    *section = frame_section(frame, TABLE_plan_stats);
	int			row = section_add(section);
	UnixMs		since = plan->since == 0 ? 0
		: (plan->since + TACHO_EPOCH_OFFSET_US) / 1000;

#define SET(column, value) \
	section_set(section, row, COL_plan_stats_##column, value)
	SET(time, frame_time(frame, pass.time));
	SET(elapsed_ms, pass.elapsed_ms);
	SET(entry, entry);
	SET(plan_id, frame_int(plan->plan_id));
	SET(plan_since, frame_time(frame, since));
	SET(was_alone, plan->first);
	SET(calls, plan->values.calls);
	SET(total_exec_time, plan->values.total_exec_time);
	SET(max_exec_time, plan->max_exec_time);
	SET(rows, plan->values.rows);
	SET(shared_blks_hit, plan->values.shared_blks_hit);
	SET(shared_blks_read, plan->values.shared_blks_read);
	SET(temp_blks_written, plan->values.temp_blks_written);
	SET(cpu_time, plan->values.cpu_time);
#undef SET
}

/*
 * Time from the last call to the end of the interval, as the history stores
 * it. A call during the pass, and a clock that was set, count as 0 ms.
 */
static int64
since_call_ms(const StatementRow *counted)
{
	UnixMs		call = (counted->last_call + TACHO_EPOCH_OFFSET_US) / 1000;

	if (counted->last_call == 0)
		return 0;
	return Max(pass.time - call, 0) + 1;
}

static void
put_row(const StatementRow *counted)
{
	Frame	   *frame = recorder_frame(pass.time);
	uint64		entry = entry_id(&counted->key);
	int			row = add_row(frame, entry);
	Section    *section = frame_section(frame, TABLE_statement_stats);
	const uint8 *ids = column_ids();

	section_set(section, row, COL_statement_stats_since_call_ms,
				since_call_ms(counted));
	for (int i = 0; i < HISTORY_COLUMNS; i++)
		if (counted->values[i] != 0)
			section_set(section, row, ids[i], counted->values[i]);
	for (int i = 0; i < counted->plans; i++)
		put_plan(frame, entry, &counted->plan[i]);
	pending_note(counted, pass.boot_us);
}

/* Fills rows from the next slots. */
static int
read_batch(StatementRow *rows)
{
	int			n = 0;

	for (int looked = 0; looked < 8 * BATCH; looked++)
	{
		if (n == BATCH || pass.slot == pass.slots)
			break;
		n += statements_record(pass.slot++, &rows[n]);
	}
	return n;
}

static void
put_batch(const StatementRow *rows, int n, TachoStatus *status)
{
	names_begin();
	for (int i = 0; i < n; i++)
	{
		names_want_database(rows[i].key.database_id);
		names_want_role(rows[i].key.user_id);
	}
	names_resolve();
	for (int i = 0; i < n; i++)
		put_row(&rows[i]);
	status->statement_rows += n;
	if (n > 0 && frame_rows(recorder_frame(pass.time),
							TABLE_statement_stats) >= ROWS_PER_FRAME)
		recorder_close(status);
}

static void
put_error(const ErrorCount *error)
{
	Frame	   *frame = recorder_frame(pass.time);
	uint64		entry = error->sqlstate == 0 ? 0 : entry_id(&error->key);
	Section    *section = frame_section(frame, TABLE_error_stats);
	int			row = section_add(section);

#define SET(column, value) \
	section_set(section, row, COL_error_stats_##column, value)
	SET(time, frame_time(frame, pass.time));
	SET(elapsed_ms, pass.elapsed_ms);
	SET(entry, entry);
	SET(sqlstate, error->sqlstate);
	SET(errors, error->count);
#undef SET
}

/* Takes the errors by SQLSTATE, or records the next ones. */
static void
put_errors(void)
{
	const ErrorCount *batch = &errors[pass.error];
	int			n;

	if (pass.errors < 0)
	{
		pass.errors = error_counts_take(errors);
		/* a stopped holder of the lock does not stop the pass: the next one tries again */
		if (pass.errors < 0 && ++pass.tries == TRIES)
			pass.errors = 0;
		return;
	}
	n = pass.discard ? 0 : Min(pass.errors - pass.error, BATCH);
	pass.error = pass.discard ? pass.errors : pass.error + n;
	names_begin();
	for (int i = 0; i < n; i++)
	{
		names_want_database(batch[i].key.database_id);
		names_want_role(batch[i].key.user_id);
	}
	names_resolve();
	for (int i = 0; i < n; i++)
		put_error(&batch[i]);
}

static void
end_pass(TachoStatus *status)
{
	pass.running = false;
	statements_set_recorded_at(pass.boot_us);
	if (!pass.discard)
		(void) add_row(recorder_frame(pass.time), 0);
	status->statements_recorded = pass.time * 1000 - TACHO_EPOCH_OFFSET_US;
}

static void
put_statements(TachoStatus *status)
{
	static StatementRow rows[BATCH];
	int			n = read_batch(rows);

	if (!pass.discard)
		put_batch(rows, n, status);
}

/* Continues a pass until its end, for at most `for_us`. */
static void
run_pass(int64 for_us, TachoStatus *status)
{
	int64		end_us = clock_boot_us() + for_us;

	while (pass.running && clock_boot_us() < end_us)
		if (pass.slot < pass.slots)
			put_statements(status);
		else if (pass.error != pass.errors)
			put_errors();
		else
			end_pass(status);
}

void
statements_turn(int64 wall_us, int64 boot_us, TachoStatus *status)
{
	if (!statements_active())
		return;
	statements_clock_advance();
	if (tacho_statements_interval == 0)
	{
		pass.running = false;
		last_interval = -1;
		statements_set_recorded_at(0);
		return;
	}
	mark_resets();
	pending_written(writer_first_unacknowledged());
	if (!pass.running &&
		(is_due(wall_us) || (statements_want_record() && writer_has_room())))
		begin_pass(wall_us, boot_us);
	run_pass(TURN_US, status);
}

bool
statements_turn_again(void)
{
	return pass.running;
}

void
statements_finish(int64 wall_us, int64 boot_us, TachoStatus *status)
{
	if (!statements_active() || tacho_statements_interval == 0)
		return;
	run_pass(USECS_PER_SEC, status);
	begin_pass(wall_us, boot_us);
	run_pass(USECS_PER_SEC, status);
}

void
statements_end(void)
{
	if (statements_active())
		pending_end(writer_first_unwritten(),
					clock_boot_us() - longest_ms() * 1000);
}
