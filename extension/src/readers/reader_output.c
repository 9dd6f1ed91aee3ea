/*
 * reader_output.c
 *	  Turns the output of `tacho query` into rows.
 *
 * The child prints a line of column names separated by tabs, then rows in the
 * text format of COPY, then `\.`. Columns of the SQL function are matched by
 * name. So an older SQL script works with a program that prints more columns.
 *
 * Memory: rows have a context of their own, which is reset after each row.
 * Everything else lives in the context that was current at
 * reader_output_begin().
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "core/encoding.h"
#include "readers/reader.h"

#define VERSION_HINT \
	"The tacho program and the extension have different versions. Install both from the same release."

typedef enum OutputStage
{
	EXPECT_HEADER,
	EXPECT_ROWS,
	EXPECT_NOTHING				/* after the end marker */
} OutputStage;

struct ReaderOutput
{
	TupleDesc	desc;
	Tuplestorestate *store;
	OutputStage stage;
	StringInfoData line;		/* a line without its end yet */
	int			ncolumns;		/* columns of the output */
	int		   *attribute;		/* by column: index in desc, -1 = unused */
	FmgrInfo   *input;			/* by attribute of desc */
	Oid		   *ioparam;
	Datum	   *values;
	bool	   *nulls;
	int64		rows;
	MemoryContext row_context;
};

/* the position of a value that its input function refuses */
typedef struct ValueContext
{
	const char *column;
	int64		row;
} ValueContext;

ReaderOutput *
reader_output_begin(TupleDesc desc, Tuplestorestate *store)
{
	ReaderOutput *output = palloc0(sizeof(ReaderOutput));
	int			natts = desc->natts;

	output->desc = desc;
	output->store = store;
	output->stage = EXPECT_HEADER;
	initStringInfo(&output->line);
	output->input = palloc0(sizeof(FmgrInfo) * natts);
	output->ioparam = palloc0(sizeof(Oid) * natts);
	output->values = palloc0(sizeof(Datum) * natts);
	output->nulls = palloc0(sizeof(bool) * natts);
	output->row_context = AllocSetContextCreate(CurrentMemoryContext,
												"tacho reader row",
												ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < natts; i++)
	{
		Oid			function;

		getTypeInputInfo(TupleDescAttr(desc, i)->atttypid, &function,
						 &output->ioparam[i]);
		fmgr_info(function, &output->input[i]);
	}
	return output;
}

/* Removes COPY's escapes in place; returns the new length. */
static int
unescape(char *field, int length)
{
	static const char letters[] = "bfnrtv";
	static const char meanings[] = "\b\f\n\r\t\v";
	int			to = 0;

	for (int from = 0; from < length; from++)
	{
		char		c = field[from];

		if (c == '\\' && from + 1 < length)
		{
			const char *letter;

			c = field[++from];
			letter = c == '\0' ? NULL : strchr(letters, c);
			if (letter != NULL)
				c = meanings[letter - letters];
		}
		field[to++] = c;
	}
	field[to] = '\0';
	return to;
}

static void
value_context(void *arg)
{
	ValueContext *context = arg;

	errcontext("reading row " INT64_FORMAT ", column \"%s\" of the output of the tacho program",
			   context->row, context->column);
}

/* Stores a writable, null-terminated field in output->values. */
static void
store_field(ReaderOutput *output, int attribute, char *field, int length)
{
	Form_pg_attribute att = TupleDescAttr(output->desc, attribute);
	ValueContext context = {NameStr(att->attname), output->rows + 1};
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = value_context,
		.arg = &context
	};

	if (length == 2 && field[0] == '\\' && field[1] == 'N')
	{
		output->nulls[attribute] = true;
		return;
	}
	length = unescape(field, length);
	if (!encoding_is_ascii(field, length))
		field = encoding_to_server(field, length, PG_UTF8);

	error_context_stack = &callback;
	output->values[attribute] =
		InputFunctionCall(&output->input[attribute], field,
						  output->ioparam[attribute], att->atttypmod);
	output->nulls[attribute] = false;
	error_context_stack = callback.previous;
}

/*
 * Returns the next field of a line, null-terminated, and sets *length. Moves
 * *next behind it. NULL if no field is left.
 */
static char *
next_field(char **next, char *end, int *length)
{
	char	   *field = *next;
	char	   *tab;

	if (field == NULL)
		return NULL;
	tab = memchr(field, '\t', end - field);
	*length = (tab ? tab : end) - field;
	field[*length] = '\0';
	*next = tab ? tab + 1 : NULL;
	return field;
}

static int
attribute_of(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
			return i;
	}
	return -1;
}

static bool
take_header(ReaderOutput *output, char *line, int length,
			ReaderFailure *failure)
{
	int			natts = output->desc->natts;
	bool	   *found = palloc0(sizeof(bool) * natts);
	char	   *next = line;
	char	   *field;
	int			field_length;

	output->attribute = palloc0(sizeof(int) * (length + 1));
	while ((field = next_field(&next, line + length, &field_length)) != NULL)
	{
		int			attribute = attribute_of(output->desc, field);

		output->attribute[output->ncolumns++] = attribute;
		if (attribute >= 0)
			found[attribute] = true;
	}
	for (int i = 0; i < natts; i++)
	{
		if (!found[i])
			return reader_fail(failure, ERRCODE_PROTOCOL_VIOLATION,
							   psprintf("output of the tacho program has no column \"%s\"",
										NameStr(TupleDescAttr(output->desc, i)->attname)),
							   NULL, pstrdup(VERSION_HINT));
	}
	output->stage = EXPECT_ROWS;
	return true;
}

static bool
take_row(ReaderOutput *output, char *line, int length, ReaderFailure *failure)
{
	MemoryContext old = MemoryContextSwitchTo(output->row_context);
	char	   *next = line;
	char	   *field;
	int			field_length;
	int			column = 0;

	while ((field = next_field(&next, line + length, &field_length)) != NULL)
	{
		if (column < output->ncolumns && output->attribute[column] >= 0)
			store_field(output, output->attribute[column], field,
						field_length);
		column++;
	}
	if (column == output->ncolumns)
		tuplestore_putvalues(output->store, output->desc, output->values,
							 output->nulls);
	MemoryContextSwitchTo(old);
	MemoryContextReset(output->row_context);

	if (column != output->ncolumns)
		return reader_fail(failure, ERRCODE_PROTOCOL_VIOLATION,
						   psprintf("row " INT64_FORMAT " of the output of the tacho program has %d columns instead of %d",
									output->rows + 1, column,
									output->ncolumns),
						   NULL, pstrdup(VERSION_HINT));
	output->rows++;
	return true;
}

/* Takes one writable, null-terminated line without its newline. */
static bool
take_line(ReaderOutput *output, char *line, int length,
		  ReaderFailure *failure)
{
	CHECK_FOR_INTERRUPTS();

	if (output->stage == EXPECT_HEADER)
		return take_header(output, line, length, failure);
	if (output->stage == EXPECT_NOTHING)
		return reader_fail(failure, ERRCODE_PROTOCOL_VIOLATION,
						   pstrdup("output of the tacho program continues after its end marker"),
						   NULL, pstrdup(VERSION_HINT));
	if (length == 2 && line[0] == '\\' && line[1] == '.')
	{
		output->stage = EXPECT_NOTHING;
		return true;
	}
	return take_row(output, line, length, failure);
}

bool
reader_output_add(ReaderOutput *output, const char *data, int length,
				  ReaderFailure *failure)
{
	StringInfo	line = &output->line;

	while (length > 0)
	{
		const char *newline = memchr(data, '\n', length);
		int			part = newline ? newline - data : length;

		if (line->len + part > READER_LINE_LIMIT)
			return reader_fail(failure, ERRCODE_PROTOCOL_VIOLATION,
							   psprintf("row of the output of the tacho program is longer than %d MB",
										READER_LINE_LIMIT / 1024 / 1024),
							   NULL, NULL);
		appendBinaryStringInfo(line, data, part);
		if (newline == NULL)
			return true;
		if (!take_line(output, line->data, line->len, failure))
			return false;
		resetStringInfo(line);
		data += part + 1;
		length -= part + 1;
	}
	return true;
}

bool
reader_output_end(ReaderOutput *output, ReaderFailure *failure)
{
	MemoryContextDelete(output->row_context);
	if (output->stage == EXPECT_NOTHING && output->line.len == 0)
		return true;
	return reader_fail(failure, ERRCODE_PROTOCOL_VIOLATION,
					   pstrdup("output of the tacho program is incomplete"),
					   psprintf("It ended after " INT64_FORMAT " rows without the end marker.",
								output->rows),
					   NULL);
}
