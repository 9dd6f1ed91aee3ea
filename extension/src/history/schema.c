/*
 * schema.c
 *	  The catalog as rows of the hello frame.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "changes/schema_change.h"
#include "core/counters.h"
#include "history/schema.h"

/* smaller ids belong to the key columns of table statement_stats */
#define FIRST_COUNTER	16

typedef struct SchemaColumn
{
	ModelTable	table;
	ModelColumn column;
	ModelType	type;
	ModelRole	role;
	const char *table_name;
	const char *column_name;
	const char *target;
} SchemaColumn;

typedef struct SchemaLabel
{
	const char *enumeration;
	int			value;
	const char *label;
} SchemaLabel;

/*
 * Checks that ids grow from line to line, within a table and in the list of
 * counters. Files, exports and views show columns in the order of lines, and
 * readers sort columns by id. In an enum, a name without a value is one more
 * than the name before it. So LEAST_x is the least id that line x may have.
 */
enum
{
#define TABLE(id, name, doc) LEAST_TABLE_##name, ID_TABLE_##name = id,
#define COLUMN(table, id, name, type, target, dimension, doc)
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

enum
{
#define TABLE(id, name, doc) BEFORE_##name = 0,
#define COLUMN(table, id, name, type, target, dimension, doc) \
	LEAST_##table##_##name, ID_##table##_##name = id,
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

enum
{
	BEFORE_COUNTERS = FIRST_COUNTER - 1,
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	LEAST_COUNTER_##name, ID_COUNTER_##name = id, \
	LAST_COUNTER_##name = id + COUNTER_IDS_##kind - 1,
#include "../../../catalog/counters.h"
#undef COUNTER
};

#define ASSERT_ORDER(name) \
	StaticAssertDecl((int) ID_##name >= (int) LEAST_##name, \
					 "the id of " #name " is not greater than the one before it in the catalog: append at the end of its list");
#define TABLE(id, name, doc) ASSERT_ORDER(TABLE_##name)
#define COLUMN(table, id, name, type, target, dimension, doc) \
	ASSERT_ORDER(table##_##name) \
	StaticAssertDecl(TABLE_##table != TABLE_statement_stats || id < FIRST_COUNTER, \
					 "the id of " #name " is the id of a counter, too");
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	ASSERT_ORDER(COUNTER_##name)
#include "../../../catalog/counters.h"
#undef COUNTER

static const SchemaColumn columns[] = {
#define TABLE(id, name, doc)
#define COLUMN(table, id, name, type, target, dimension, doc) \
	{TABLE_##table, id, TYPE_##type, ROLE_##dimension, #table, #name, #target},
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

static const SchemaLabel labels[] = {
#define TABLE(id, name, doc)
#define COLUMN(table, id, name, type, target, dimension, doc)
#define LABEL(enumeration, value, label) {#enumeration, value, label},
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

/* the values of model.h */
static const SchemaLabel named[] = {
	{"category", CATEGORY_FOREGROUND, "foreground"},
	{"category", CATEGORY_MAINTENANCE, "maintenance"},
	{"category", CATEGORY_BACKGROUND, "background"},
	{"category", CATEGORY_REPLICATION, "replication"},
	{"state", SESSION_ACTIVE, "active"},
	{"state", SESSION_IDLE, "idle"},
	{"state", SESSION_IDLE_IN_TRANSACTION, "idle in transaction"},
	{"state", SESSION_IDLE_IN_TRANSACTION_ABORTED,
	"idle in transaction (aborted)"},
	{"state", SESSION_FASTPATH, "fastpath function call"},
	{"state", SESSION_DISABLED, "disabled"},
	{"state", SESSION_STARTING, "starting"},
	{"cpu", CPU_NOT_KNOWN, "CPU*"},
	{"cpu", CPU_RUNNING, "running"},
	{"cpu", CPU_RUNNABLE, "runnable"},
	{"cpu", CPU_UNINSTRUMENTED, "uninstrumented"},
	{"tick_status", TICK_OK, "ok"},
	{"tick_status", TICK_LATE, "late"},
	{"tick_status", TICK_FAILED, "failed"},
	{"xmin_holder", XMIN_HOLDER_SESSION, "session"},
	{"xmin_holder", XMIN_HOLDER_PREPARED, "prepared transaction"},
	{"xmin_holder", XMIN_HOLDER_SLOT, "replication slot"},
	{"outcome", SCHEMA_PREPARED, "prepared"},
	{"outcome", SCHEMA_ROLLED_BACK, "rolled back"},
	{"relation_kind", RELATION_TABLE, "table"},
	{"relation_kind", RELATION_INDEX, "index"},
	{"relation_kind", RELATION_UNIQUE_INDEX, "unique index"},
	{"relation_kind", RELATION_PRIMARY_KEY, "primary key"},
	{"relation_kind", RELATION_INVALID_INDEX, "invalid index"},
	{"relation_kind", RELATION_PARTITIONED_TABLE, "partitioned table"},
	{"relation_kind", RELATION_PARTITIONED_INDEX, "partitioned index"},
	{"relation_kind", RELATION_MATERIALIZED_VIEW, "materialized view"},
	{"relation_kind", RELATION_TOAST_TABLE, "TOAST table"},
	{"relation_kind", RELATION_SEQUENCE, "sequence"},
	{"relation_kind", RELATION_OTHER, "other"},
	{"marker", MARKER_START, "start"},
	{"marker", MARKER_STOP, "stop"},
	{"marker", MARKER_CRASH_RECOVERY, "crash recovery"},
	{"marker", MARKER_PROMOTION, "promotion"},
	{"marker", MARKER_SETTINGS_CHANGED, "settings changed"},
	{"marker", MARKER_STATISTICS_RESET, "statistics reset"},
	{"marker", MARKER_CLOCK_STEP, "clock step"},
	{"marker", MARKER_FRAMES_LOST, "frames lost"},
	{"marker", MARKER_INTERVAL_CHANGED, "interval changed"},
	{"marker", MARKER_TEXTS_LEFT_OUT, "texts left out"},
	{"marker", MARKER_NAMES_LEFT_OUT, "names left out"},
	{"marker", MARKER_SCHEMA_CHANGED, "schema changed"},
	{"marker", MARKER_RELEASE, "release"},
};

static void
put_text(Section *section, int column, const char *text)
{
	section_set_bytes(section, column, text, strlen(text));
}

static void
put_column(Section *section, const SchemaColumn *column)
{
	int			row = section_add(section);

	section_set(section, row, COL_schema_table_id, column->table);
	section_set(section, row, COL_schema_column_id, column->column);
	section_set(section, row, COL_schema_type, column->type);
	section_set(section, row, COL_schema_flags, column->role);
	put_text(section, COL_schema_table_name, column->table_name);
	put_text(section, COL_schema_column_name, column->column_name);
	put_text(section, COL_schema_target,
			 strcmp(column->target, "none") == 0 ? "" : column->target);
}

/* The counters of statements, as columns of table statement_stats. */
static void
put_counters(Section *section)
{
	HistoryColumn counters[HISTORY_COLUMNS];

	counters_history_columns(counters);
	for (int i = 0; i < HISTORY_COLUMNS; i++)
	{
		const HistoryColumn *counter = &counters[i];
		SchemaColumn column = {
			.table = TABLE_statement_stats,
			.column = counter->id,
			.type = counter->is_time ? TYPE_SPAN : TYPE_UINT,
			.table_name = "statement_stats",
			.column_name = counter->name,
			.target = "none",
		};

		if (counter->bucket >= 0)
			column.column_name = psprintf("%s_%d", counter->name,
										  counter->bucket);
		put_column(section, &column);
	}
}

void
schema_put(Frame *frame)
{
	Section    *section = frame_section(frame, TABLE_schema);

	for (int i = 0; i < lengthof(columns); i++)
		put_column(section, &columns[i]);
	put_counters(section);

	section = frame_section(frame, TABLE_label);
	for (int i = 0; i < lengthof(labels); i++)
	{
		int			row = section_add(section);

		section_set(section, row, COL_label_value, labels[i].value);
		put_text(section, COL_label_enumeration, labels[i].enumeration);
		put_text(section, COL_label_label, labels[i].label);
	}
}

int
schema_label(const char *enumeration, const char *label)
{
	for (int i = 0; i < lengthof(labels); i++)
		if (strcmp(labels[i].enumeration, enumeration) == 0 &&
			strcmp(labels[i].label, label) == 0)
			return labels[i].value;
	return 0;
}

ModelRole
schema_role(ModelTable table, int column)
{
	for (int i = 0; i < lengthof(columns); i++)
		if (columns[i].table == table && columns[i].column == column)
			return columns[i].role;
	return ROLE_NONE;
}

void
schema_check(void)
{
	for (int i = 0; i < lengthof(named); i++)
		if (schema_label(named[i].enumeration, named[i].label) != named[i].value)
			elog(ERROR, "value of label \"%s\" of the catalog is not %d",
				 named[i].label, named[i].value);
}
