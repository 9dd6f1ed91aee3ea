/*
 * recorder_tables.c
 *	  Every tacho.tables_interval the sampler records the activity of tables and
 *	  indexes of all databases: their counters in the server's statistics.
 *
 * A pass begins when the wall clock enters another interval. One turn collects
 * the keys of all tables and indexes. The next turns, of TURN_US each, read
 * their counters. The 100 that did most get a row each, all others together
 * the last row of the pass, which is there in any case. The first pass only
 * remembers the counters. While the writer is behind, no pass begins; the next
 * pass then covers a longer time.
 *
 * A table or index that the pass before did not find began at zero, because
 * the server makes an entry with the first use. If a counter is less than it
 * was, the statistics were reset, and all of its counters began at zero.
 * Counts between the last pass and a DROP are lost.
 *
 * Locking: see relation_stats.c. Memory: about 128 bytes for each table and
 * index, at most MAX_RELATIONS. An error of the server's functions ends the
 * pass, and the next pass begins from nothing.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "core/clocks.h"
#include "core/compat.h"
#include "core/guarded.h"
#include "core/settings.h"
#include "history/dictionary.h"
#include "history/names.h"
#include "history/writer.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"
#include "sampler/recorder_catalog.h"
#include "sampler/recorder_tables.h"
#include "sampler/table_ranks.h"

#define TURN_US			250
#define BATCH			16		/* entries between two readings of the clock */
#define MAX_RELATIONS	100000
#define FIRST_ROOM		4096
#define ROUNDS			3		/* tries to read a busy entry */

/* A table or index, with its counters at the last pass. */
typedef struct Known
{
	RelationKey key;
	RelationCounts before;
	uint32		pass;			/* the last one that found it */
	bool		was_read;		/* `before` is set */
	char		status;			/* of the hash table */
} Known;

#define SH_PREFIX known
#define SH_ELEMENT_TYPE Known
#define SH_KEY_TYPE RelationKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) relation_hash(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef enum Phase
{
	PHASE_NONE,
	PHASE_KEYS,					/* collects keys */
	PHASE_READ,					/* reads the entries of keys */
	PHASE_FORGET				/* removes what is gone from `known` */
} Phase;

typedef struct Pass
{
	Phase		phase;
	uint32		number;
	bool		after_whole;	/* the pass before found everything */
	bool		whole;			/* so does this one */
	UnixMs		time;			/* its begin */
	int64		boot_us;
	int64		elapsed_ms;		/* since the pass before, 0 = first */
	int			next;			/* in keys[] */
	int			keys;
	int			again;			/* busy ones, moved to the begin of keys[] */
	int			round;
	int			left_out;
	known_iterator iterator;
} Pass;

static Pass pass;
static TableRanks ranks;
static MemoryContext context;	/* NULL while nothing is known */
static known_hash *known;
static RelationKey *keys;
static int	room;				/* of keys[] */
static int64 last_interval = -1;	/* number of the interval, by wall clock */
static int64 last_pass_us = 0;	/* CLOCK_BOOTTIME of the last pass, 0 = none */
static int64 turn_end_us;

static void
remember_nothing(void)
{
	if (context != NULL)
		MemoryContextDelete(context);
	context = NULL;
	last_pass_us = 0;
	memset(&pass, 0, sizeof(pass));
}

static void
make_room(void)
{
	context = AllocSetContextCreate(TopMemoryContext, "tacho tables",
									ALLOCSET_DEFAULT_SIZES);
	known = known_create(context, FIRST_ROOM, NULL);
	room = FIRST_ROOM;
	keys = MemoryContextAlloc(context, room * sizeof(RelationKey));
}

static void
begin_pass(int64 wall_us, int64 boot_us)
{
	if (context == NULL)
		make_room();
	memset(&ranks, 0, sizeof(ranks));
	pass = (Pass) {
		.phase = PHASE_KEYS,
		.number = pass.number + 1,
		.after_whole = pass.whole,
		.time = wall_us / 1000,
		.boot_us = boot_us,
		.elapsed_ms = last_pass_us == 0 ? 0 :
			Max(1, (boot_us - last_pass_us) / 1000),
	};
}

/* True at the start, and when the wall clock has entered another interval. */
static bool
is_due(int64 wall_us)
{
	int64		number = wall_us / 1000 / tacho_tables_interval;

	if (number == last_interval ||
		(last_interval != -1 && !writer_has_room()))
		return false;
	last_interval = number;
	return true;
}

/* If there was no room for all keys, the next turn collects them again. */
static void
collect_keys(void)
{
	int			found = relation_stats_keys(keys, room);

	if (found > room && room < MAX_RELATIONS)
	{
		room = Min(found + found / 4, MAX_RELATIONS);
		keys = repalloc(keys, room * sizeof(RelationKey));
		return;
	}
	pass.keys = Min(found, room);
	pass.left_out = found - pass.keys;
	pass.whole = pass.left_out == 0;
	pass.phase = PHASE_READ;
}

/* The entry of a key; a new one if there is room, else NULL. */
static Known *
find_known(RelationKey key)
{
	Known	   *entry = known_lookup(known, key);
	bool		found;

	if (entry == NULL && known->members >= MAX_RELATIONS)
	{
		pass.whole = false;
		return NULL;
	}
	if (entry == NULL)
	{
		entry = known_insert(known, key, &found);
		memset(entry->before, 0, sizeof(RelationCounts));
		entry->was_read = pass.after_whole;
	}
	entry->pass = pass.number;
	return entry;
}

/* Writes what was counted since the last pass; false if that is nothing. */
static bool
find_increases(const RelationCounts now, const RelationCounts before,
			   RelationCounts increases)
{
	bool		was_reset = false;
	bool		any = false;

	for (int i = 0; i < RELATION_COUNTERS; i++)
		was_reset |= now[i] < before[i];
	for (int i = 0; i < RELATION_COUNTERS; i++)
	{
		increases[i] = was_reset ? now[i] : now[i] - before[i];
		any |= increases[i] != 0;
	}
	return any;
}

/* A busy entry is read again when all others have been read. */
static void
note_busy(RelationKey key)
{
	if (pass.round + 1 < ROUNDS)
		keys[pass.again++] = key;
	else if (known_lookup(known, key) != NULL)
		(void) find_known(key);	/* the next pass reads it */
	else
		pass.whole = false;
}

static void
read_relation(RelationKey key)
{
	RelationCounts now;
	RelationCounts increases;
	RelationState state;
	RelationRead result = relation_stats_read(key, now, &state);
	Known	   *entry;

	if (result == RELATION_BUSY)
		note_busy(key);
	if (result != RELATION_READ || (entry = find_known(key)) == NULL)
		return;
	if (entry->was_read && find_increases(now, entry->before, increases))
		table_ranks_add(&ranks, key, increases, &state);
	memcpy(entry->before, now, sizeof(RelationCounts));
	entry->was_read = true;
}

static void
read_batch(void)
{
	for (int i = 0; i < BATCH && pass.next < pass.keys; i++)
		read_relation(keys[pass.next++]);
	if (pass.next < pass.keys)
		return;
	if (pass.again > 0)
	{
		pass.keys = pass.again;
		pass.again = pass.next = 0;
		pass.round++;
		return;
	}
	known_start_iterate(known, &pass.iterator);
	pass.phase = PHASE_FORGET;
}

static void
forget_batch(void)
{
	for (int i = 0; i < 8 * BATCH; i++)
	{
		Known	   *entry = known_iterate(known, &pass.iterator);

		if (entry == NULL)
		{
			pass.phase = PHASE_NONE;
			return;
		}
		if (entry->pass != pass.number)
			known_delete_item(known, entry);
	}
}

/* Continues the pass until its end, or the end of the turn. */
static void
continue_pass(void)
{
	if (pass.phase == PHASE_KEYS)
	{
		collect_keys();
		return;
	}
	while (pass.phase != PHASE_NONE && clock_boot_us() < turn_end_us)
		if (pass.phase == PHASE_READ)
			read_batch();
		else
			forget_batch();
}

/* Adds a row with increases; the caller sets the other columns. */
static int
add_row(Frame *frame, const RelationCounts increases)
{
	Section    *section = frame_section(frame, TABLE_table_stats);
	int			row = section_add(section);

	section_set(section, row, COL_table_stats_time, frame_time(frame, pass.time));
	section_set(section, row, COL_table_stats_elapsed_ms, pass.elapsed_ms);
	for (int i = 0; i < RELATION_COUNTERS; i++)
		section_set(section, row, RELATION_FIRST_COUNTER + i, increases[i]);
	if (COMPAT_COUNTS_NEW_PAGES)
		section_set(section, row, COL_table_stats_tuples_newpage_updated,
					increases[RELATION_COUNTER(tuples_newpage_updated)] + 1);
	return row;
}

static void
put_rank(Frame *frame, const TableRank *rank)
{
	Oid			database = RELATION_DATABASE(rank->key);
	uint64		name = database == InvalidOid ? 0 :
		dictionary_use_name(processes_database_name(database));
	int			row = add_row(frame, rank->increases);
	Section    *section = frame_section(frame, TABLE_table_stats);
	const RelationState *state = &rank->state;

#define SET(column, value) \
	section_set(section, row, COL_table_stats_##column, value)
	SET(database_oid, database);
	SET(database, name);
	SET(oid, RELATION_OID(rank->key));
	SET(live_tuples, state->live_tuples);
	SET(dead_tuples, state->dead_tuples);
	SET(mod_since_analyze, state->mod_since_analyze);
	SET(ins_since_vacuum, state->ins_since_vacuum);
	SET(last_vacuum, frame_timestamp(frame, state->last_vacuum));
	SET(last_autovacuum, frame_timestamp(frame, state->last_autovacuum));
	SET(last_analyze, frame_timestamp(frame, state->last_analyze));
	SET(last_autoanalyze, frame_timestamp(frame, state->last_autoanalyze));
	SET(last_scan, frame_timestamp(frame, state->last_scan));
#undef SET
}

static void
put_others(Frame *frame)
{
	int			row = add_row(frame, ranks.sums);
	Section    *section = frame_section(frame, TABLE_table_stats);

	section_set(section, row, COL_table_stats_others, ranks.others);
	section_set(section, row, COL_table_stats_left_out, pass.left_out);
}

static void
end_pass(void)
{
	Frame	   *frame;

	last_pass_us = pass.boot_us;
	if (pass.elapsed_ms == 0)
		return;
	names_begin();
	for (int i = 0; i < ranks.count; i++)
		if (RELATION_DATABASE(ranks.ranks[i].key) != InvalidOid)
			names_want_database(RELATION_DATABASE(ranks.ranks[i].key));
	names_resolve();
	frame = recorder_frame(pass.time);
	for (int i = 0; i < ranks.count; i++)
	{
		put_rank(frame, &ranks.ranks[i]);
		catalog_want(ranks.ranks[i].key);
	}
	put_others(frame);
}

static void
run_turn(int64 for_us)
{
	turn_end_us = clock_boot_us() + for_us;
	if (!guarded_run(continue_pass))
		remember_nothing();
	else if (pass.phase == PHASE_NONE)
		end_pass();
}

void
tables_turn(int64 wall_us, int64 boot_us)
{
	if (tacho_tables_interval == 0)
	{
		remember_nothing();
		last_interval = -1;
		return;
	}
	if (pass.phase == PHASE_NONE && is_due(wall_us))
		begin_pass(wall_us, boot_us);
	if (pass.phase != PHASE_NONE)
		run_turn(TURN_US);
}

bool
tables_turn_again(void)
{
	return pass.phase != PHASE_NONE;
}

static void
finish_pass(int64 until_us)
{
	while (pass.phase != PHASE_NONE && clock_boot_us() < until_us)
		run_turn(until_us - clock_boot_us());
}

void
tables_finish(int64 wall_us, int64 boot_us)
{
	int64		until_us = clock_boot_us() + USECS_PER_SEC;

	finish_pass(until_us);
	if (last_pass_us == 0 || pass.phase != PHASE_NONE)
		return;
	begin_pass(wall_us, boot_us);
	finish_pass(until_us);
}
