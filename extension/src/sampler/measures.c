/*
 * measures.c
 *	  Rows of measurements: readings of the server as columns of the history.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "history/dictionary.h"
#include "history/names.h"
#include "sampler/measures.h"
#include "sampler/recorder.h"

static ModelRole roles[MODEL_MAX_TABLE + 1][MEASURE_COLUMNS];

void
measures_init(void)
{
	for (int table = TABLE_server; table <= TABLE_server_disk; table++)
		for (int column = 0; column < MEASURE_COLUMNS; column++)
			roles[table][column] = schema_role(table, column);
}

void
begin_counting(Values before, bool at_zero)
{
	for (int column = 0; column < MEASURE_COLUMNS; column++)
		before[column] = at_zero ? 0 : NOT_KNOWN;
}

void
forget(Values values)
{
	begin_counting(values, false);
}

bool
has_counted(ModelTable table, const Values now, const Values before)
{
	for (int column = 0; column < MEASURE_COLUMNS; column++)
		if (roles[table][column] == ROLE_COUNTER &&
			before[column] != NOT_KNOWN && now[column] != before[column])
			return true;
	return false;
}

Section *
add_row(ModelTable table, UnixMs now, int *row)
{
	Frame	   *frame = recorder_frame(now);
	Section    *section = frame_section(frame, table);

	*row = section_add(section);
	/* column 1 is the time in each table of measurements */
	section_set(section, *row, COL_server_time, frame_time(frame, now));
	return section;
}

uint64
object_name(const char *name)
{
	return dictionary_text(name);
}

void
set_measures(Section *section, int row, const Values now, Values before)
{
	for (int column = 0; column < MEASURE_COLUMNS; column++)
	{
		ModelRole	role = roles[section->table][column];
		int64		value = now[column];

		if (role == ROLE_COUNTER)
			value = value == NOT_KNOWN || before[column] == NOT_KNOWN ||
				value < before[column] ? NOT_KNOWN : value - before[column];
		if ((role == ROLE_COUNTER || role == ROLE_GAUGE) && value != NOT_KNOWN)
			section_set(section, row, column, value + 1);
		/*
		 * a counter that could not be read now keeps its value for the next
		 * reading
		 */
		if (before && now[column] != NOT_KNOWN)
			before[column] = now[column];
	}
}

void
mark_reset(const char *what, TimestampTz reset)
{
	char		detail[NAMEDATALEN + 50];

	snprintf(detail, sizeof(detail), "statistics of %s were reset", what);
	recorder_marker(MARKER_STATISTICS_RESET,
					(reset + TACHO_EPOCH_OFFSET_US) / 1000, 0, 0, detail);
}
