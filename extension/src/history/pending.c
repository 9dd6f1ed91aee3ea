/*
 * pending.c
 *	  Rows of the history of statements on their way to the writer.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "history/pending.h"

/* A row, followed by `n` values that are not 0, and its plans. */
typedef struct Row
{
	StatementKey key;
	uint64		generation;
	uint32		slot;
	uint16		n;
	uint16		plans;
	int64		boot_us;
} Row;

typedef struct Value
{
	int64		column;
	int64		value;
} Value;

typedef struct SentFrame
{
	slist_node	node;
	uint64		sequence;
	int64		length;			/* rows begin aligned */
	char		rows[FLEXIBLE_ARRAY_MEMBER];
} SentFrame;

static MemoryContext context = NULL;
static StringInfoData open_rows;	/* of the open frame */
static slist_head sent = SLIST_STATIC_INIT(sent);

static void
init(void)
{
	MemoryContext caller;

	if (context != NULL)
		return;
	context = AllocSetContextCreate(TopMemoryContext, "tacho pending rows",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	initStringInfo(&open_rows);
	MemoryContextSwitchTo(caller);
}

void
pending_note(const StatementRow *counted, int64 boot_us)
{
	Row			row = {
		.key = counted->key,
		.generation = counted->generation,
		.slot = counted->slot,
		.plans = counted->plans,
		.boot_us = boot_us,
	};
	Value		values[HISTORY_COLUMNS];

	for (int i = 0; i < HISTORY_COLUMNS; i++)
		if (counted->values[i] != 0)
			values[row.n++] = (Value) {i, counted->values[i]};
	init();
	appendBinaryStringInfo(&open_rows, (char *) &row, sizeof(row));
	appendBinaryStringInfo(&open_rows, (char *) values, row.n * sizeof(Value));
	appendBinaryStringInfo(&open_rows, (char *) counted->plan,
						   row.plans * sizeof(PlanIncrease));
}

void
pending_sent(uint64 sequence)
{
	SentFrame  *frame;

	if (context == NULL || open_rows.len == 0)
		return;
	frame = MemoryContextAlloc(context, offsetof(SentFrame, rows) + open_rows.len);
	frame->sequence = sequence;
	frame->length = open_rows.len;
	memcpy(frame->rows, open_rows.data, open_rows.len);
	slist_push_head(&sent, &frame->node);
	resetStringInfo(&open_rows);
}

static void
give_back(const char *at, int64 length, int64 since_us)
{
	const char *end = at + length;

	while (at < end)
	{
		const Row  *row = (const Row *) at;
		const Value *values = (const Value *) (row + 1);
		const PlanIncrease *plans = (const PlanIncrease *) (values + row->n);
		StatementRow counted = {
			.key = row->key, .generation = row->generation, .slot = row->slot,
			.plans = row->plans
		};

		for (int i = 0; i < row->n; i++)
			counted.values[values[i].column] = values[i].value;
		memcpy(counted.plan, plans, row->plans * sizeof(PlanIncrease));
		if (row->boot_us >= since_us)
			statements_give_back(&counted);
		at = (const char *) (plans + row->plans);
	}
}

void
pending_lost(void)
{
	if (context == NULL)
		return;
	give_back(open_rows.data, open_rows.len, 0);
	resetStringInfo(&open_rows);
}

/*
 * The newest frame is first in the list, so written frames stand behind
 * unwritten ones.
 */
void
pending_written(uint64 sequence)
{
	slist_mutable_iter iter;

	slist_foreach_modify(iter, &sent)
	{
		SentFrame  *frame = slist_container(SentFrame, node, iter.cur);

		if (frame->sequence >= sequence)
			continue;
		slist_delete_current(&iter);
		pfree(frame);
	}
}

void
pending_end(uint64 sequence, int64 since_us)
{
	slist_iter	iter;

	pending_written(sequence);
	slist_foreach(iter, &sent)
	{
		SentFrame  *frame = slist_container(SentFrame, node, iter.cur);

		give_back(frame->rows, frame->length, since_us);
	}
	slist_init(&sent);
	if (context == NULL)
		return;
	give_back(open_rows.data, open_rows.len, since_us);
	resetStringInfo(&open_rows);
}
