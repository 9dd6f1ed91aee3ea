/*
 * model.h
 *	  The data model of catalog/samples.h as C constants.
 *
 * TABLE_sample, COL_sample_wait … are the ids of tables and columns. Macros
 * cannot turn labels into names, so the values of enumerations that the code
 * uses are repeated below. schema_check() compares them with the catalog at
 * start.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_MODEL_H
#define TACHO_MODEL_H

#include "core/counters.h"

typedef enum ModelTable
{
	/* tables of the hello frame, docs/format.md */
	TABLE_schema = 1,
	TABLE_label = 2,
	TABLE_meta = 3,
#define TABLE(id, name, doc) TABLE_##name = id,
#define COLUMN(table, id, name, type, target, dimension, doc)
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
} ModelTable;

typedef enum ModelColumn
{
	COL_schema_table_id = 1,
	COL_schema_column_id = 2,
	COL_schema_type = 3,
	COL_schema_flags = 4,
	COL_schema_table_name = 5,
	COL_schema_column_name = 6,
	COL_schema_target = 7,
	COL_label_value = 1,
	COL_label_enumeration = 2,
	COL_label_label = 3,
	COL_meta_key = 1,
	COL_meta_value = 2,
#define TABLE(id, name, doc)
#define COLUMN(table, id, name, type, target, dimension, doc) \
	COL_##table##_##name = id,
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
} ModelColumn;

/*
 * The highest ids, which give arrays their sizes. The union has one member
 * per table, as long as the table's id, so its size is the highest id.
 */
union ModelTables
{
#define TABLE(id, name, doc) char name[id];
#define COLUMN(table, id, name, type, target, dimension, doc)
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

union ModelColumns
{
#define TABLE(id, name, doc)
#define COLUMN(table, id, name, type, target, dimension, doc) \
	char		table##_##name[id];
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	char		counter_##name[id + COUNTER_IDS_##kind - 1];
#include "../../../catalog/counters.h"
#undef COUNTER
};

union ModelSampleColumns
{
#define TABLE(id, name, doc)
#define COLUMN(table, id, name, type, target, dimension, doc) \
	char		table##_##name[TABLE_##table == TABLE_sample ? id : 1];
#define LABEL(enumeration, value, label)
#include "../../../catalog/samples.h"
#undef TABLE
#undef COLUMN
#undef LABEL
};

enum
{
	MODEL_MAX_TABLE = sizeof(union ModelTables),
	MODEL_MAX_COLUMN = sizeof(union ModelColumns),
	MODEL_MAX_SAMPLE_COLUMN = sizeof(union ModelSampleColumns)
};

StaticAssertDecl(MODEL_MAX_TABLE < 256 && MODEL_MAX_COLUMN < 256,
				 "ids have one byte in a frame");

typedef enum ModelType
{
	TYPE_UINT = 1,
	TYPE_INT,
	TYPE_TIME,
	TYPE_TIME_US,
	TYPE_NAME,
	TYPE_ENUM,
	TYPE_REF,
	TYPE_BYTES,
	TYPE_SPAN
} ModelType;

/* How readers use a column: bits of its flags in the hello frame. */
typedef enum ModelRole
{
	ROLE_NONE = 0,
	ROLE_DIM = 1,
	ROLE_COUNTER = 2,
	ROLE_GAUGE = 4
} ModelRole;

typedef enum Category
{
	CATEGORY_NONE = 0,
	CATEGORY_FOREGROUND,
	CATEGORY_MAINTENANCE,
	CATEGORY_BACKGROUND,
	CATEGORY_REPLICATION
} Category;
#define CATEGORIES	(CATEGORY_REPLICATION + 1)

typedef enum SessionState
{
	SESSION_STATE_NONE = 0,
	SESSION_ACTIVE,
	SESSION_IDLE,
	SESSION_IDLE_IN_TRANSACTION,
	SESSION_IDLE_IN_TRANSACTION_ABORTED,
	SESSION_FASTPATH,
	SESSION_DISABLED,
	SESSION_STARTING
} SessionState;
#define SESSION_STATES	(SESSION_STARTING + 1)

typedef enum CpuKind
{
	CPU_NONE = 0,
	CPU_NOT_KNOWN,				/* CPU* */
	CPU_RUNNING,
	CPU_RUNNABLE,
	CPU_UNINSTRUMENTED
} CpuKind;

typedef enum TickState
{
	TICK_OK = 1,
	TICK_LATE,
	TICK_FAILED
} TickState;

typedef enum XminHolder
{
	XMIN_HOLDER_NONE = 0,
	XMIN_HOLDER_SESSION,
	XMIN_HOLDER_PREPARED,
	XMIN_HOLDER_SLOT
} XminHolder;

typedef enum RelationKind
{
	RELATION_TABLE = 1,
	RELATION_INDEX,
	RELATION_UNIQUE_INDEX,
	RELATION_PRIMARY_KEY,
	RELATION_INVALID_INDEX,
	RELATION_PARTITIONED_TABLE,
	RELATION_PARTITIONED_INDEX,
	RELATION_MATERIALIZED_VIEW,
	RELATION_TOAST_TABLE,
	RELATION_SEQUENCE,
	RELATION_OTHER
} RelationKind;

typedef enum MarkerKind
{
	MARKER_START = 1,
	MARKER_STOP = 2,
	MARKER_GAP = 3,
	MARKER_CRASH_RECOVERY = 4,
	MARKER_PROMOTION = 5,
	MARKER_SETTINGS_CHANGED = 6,
	MARKER_STATISTICS_RESET = 7,
	MARKER_CLOCK_STEP = 8,
	MARKER_FRAMES_LOST = 9,
	MARKER_INTERVAL_CHANGED = 10,
	MARKER_TEXTS_LEFT_OUT = 14,
	MARKER_NAMES_LEFT_OUT = 18,
	MARKER_SCHEMA_CHANGED = 19,
	MARKER_RELEASE = 20
} MarkerKind;

#endif							/* TACHO_MODEL_H */
