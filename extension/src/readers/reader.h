/*
 * reader.h
 *	  The parts of the reader functions: arguments, run, output, failure.
 *
 * A reader function is answered by a child process `tacho query`. reader.c
 * has the SQL-callable functions; reader_arguments.c makes the child's
 * argument vector; reader_output.c turns what it prints into rows;
 * reader_messages.c turns what it writes to standard error into messages.
 *
 * Memory: everything is allocated in the current memory context of the
 * caller, except ReaderFunction (fn_mcxt of the FmgrInfo).
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_READER_H
#define TACHO_READER_H

#include "access/tupdesc.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/tuplestore.h"

/* longest line of output that is accepted */
#define READER_LINE_LIMIT		(64 * 1024 * 1024)

/* The SQL function being executed, as pg_proc declares it. */
typedef struct ReaderFunction
{
	char	   *name;
	int			nargs;			/* input arguments */
	char	  **argnames;
	Oid		   *argtypes;
} ReaderFunction;

/* Why no answer was given. message == NULL: no failure. Server encoding. */
typedef struct ReaderFailure
{
	int			sqlstate;
	char	   *message;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* or NULL */
} ReaderFailure;

typedef struct ReaderOutput ReaderOutput;

/* reader_arguments.c */

/*
 * The function behind `flinfo`, kept in its fn_extra.
 */
extern ReaderFunction *reader_function(FmgrInfo *flinfo);

/*
 * The argument vector of the child: `tacho query NAME …` with one argument
 * for each argument of the call that is not null. Raises an error for a value
 * that no reader accepts (infinite time, interval of months).
 */
extern char **reader_arguments(const ReaderFunction *function,
							   FunctionCallInfo fcinfo);

/* reader_output.c */

/* Prepares to store rows of the given type. */
extern ReaderOutput *reader_output_begin(TupleDesc desc,
										 Tuplestorestate *store);

/*
 * Takes bytes the child printed and stores the rows that are complete; false
 * = they are not what was expected, *failure says why. Processes interrupts.
 */
extern bool reader_output_add(ReaderOutput *output, const char *data,
							  int length, ReaderFailure *failure);

/* False = the end of the output is missing, *failure says so. */
extern bool reader_output_end(ReaderOutput *output, ReaderFailure *failure);

/* reader_messages.c */

/*
 * Passes on the notices and warnings the child wrote to standard error, and
 * fills *failure from its last error message and its exit status.
 */
extern void reader_messages(const char *program, StringInfo errors,
							int status, ReaderFailure *failure);

/* What a child may use; a question that needs more is refused. */
extern int	reader_memory_mb(void);

/* The failure of a call beyond tacho.max_readers. */
extern void reader_too_many(ReaderFailure *failure);

/* The failure of a program that could not be started. */
extern void reader_not_started(const char *program, int error_number,
							   ReaderFailure *failure);

/* Sets *failure. message and the others are kept, not copied. */
extern bool reader_fail(ReaderFailure *failure, int sqlstate, char *message,
						char *detail, char *hint);

/* Raises it as an error; does not return. */
extern void reader_raise(const ReaderFailure *failure);

#endif							/* TACHO_READER_H */
