/*
 * reader.h
 *	  The parts of the reader functions: arguments, run, output, failure.
 *
 * A child process `tacho query` answers the call of a reader function.
 * reader.c has the SQL-callable functions. reader_arguments.c makes the
 * child's argument vector, reader_output.c turns its output into rows,
 * reader_messages.c turns its standard error into messages.
 *
 * Memory: the current memory context of the caller, except ReaderFunction
 * (fn_mcxt of the FmgrInfo).
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_READER_H
#define TACHO_READER_H

#include "access/tupdesc.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/tuplestore.h"

/* longest accepted line of output */
#define READER_LINE_LIMIT		(64 * 1024 * 1024)

/* The SQL function being executed, as pg_proc declares it. */
typedef struct ReaderFunction
{
	char	   *name;
	int			nargs;			/* input arguments */
	char	  **argnames;
	Oid		   *argtypes;
} ReaderFunction;

/*
 * The reason of a failed call, in server encoding. message == NULL: no
 * failure.
 */
typedef struct ReaderFailure
{
	int			sqlstate;
	char	   *message;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* or NULL */
} ReaderFailure;

typedef struct ReaderOutput ReaderOutput;

/* reader_arguments.c */

/* The function of `flinfo`; kept in its fn_extra. */
extern ReaderFunction *reader_function(FmgrInfo *flinfo);

/*
 * The argument vector of the child: `tacho query NAME …` with one option for
 * each argument of the call that is not null. Raises an error for a value
 * that no reader accepts (infinite time, interval of months).
 */
extern char **reader_arguments(const ReaderFunction *function,
							   FunctionCallInfo fcinfo);

/* reader_output.c */

/* Prepares to store rows of the given type. */
extern ReaderOutput *reader_output_begin(TupleDesc desc,
										 Tuplestorestate *store);

/*
 * Takes bytes of the child's output and stores all complete rows. Returns
 * false for unexpected bytes, with the reason in *failure. Processes
 * interrupts.
 */
extern bool reader_output_add(ReaderOutput *output, const char *data,
							  int length, ReaderFailure *failure);

/* False if the end of the output is missing; *failure says so. */
extern bool reader_output_end(ReaderOutput *output, ReaderFailure *failure);

/* reader_messages.c */

/*
 * Raises the notices and warnings from the child's standard error. Fills
 * *failure from its last error message and its exit status.
 */
extern void reader_messages(const char *program, StringInfo errors,
							int status, ReaderFailure *failure);

/*
 * The memory limit of a child, in MB. A question that needs more ends with an
 * error.
 */
extern int	reader_memory_mb(void);

/* Sets the failure of a call beyond tacho.max_readers. */
extern void reader_too_many(ReaderFailure *failure);

/* Sets the failure of a call whose child would have no memory. */
extern void reader_without_memory(ReaderFailure *failure);

/* Sets the failure of a program that could not be started. */
extern void reader_not_started(const char *program, int error_number,
							   ReaderFailure *failure);

/* Sets *failure and returns false. Keeps the strings, without a copy. */
extern bool reader_fail(ReaderFailure *failure, int sqlstate, char *message,
						char *detail, char *hint);

/* Raises the failure as an error; does not return. */
extern void reader_raise(const ReaderFailure *failure);

#endif							/* TACHO_READER_H */
