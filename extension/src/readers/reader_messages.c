/*
 * reader_messages.c
 *	  Turns the standard error of `tacho query` into messages.
 *
 * One line is one message: severity, SQLSTATE, primary, detail, hint,
 * separated by tabs and escaped as in COPY. A line of another shape (a panic,
 * a message of the dynamic linker) becomes part of a failure's detail.
 *
 * Locking: none. Memory: current context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <signal.h>
#include <sys/wait.h>

#include "mb/pg_wchar.h"
#include "utils/elog.h"

#include "core/encoding.h"
#include "core/settings.h"
#include "core/spawner.h"
#include "readers/child.h"
#include "readers/reader.h"

#define MESSAGE_FIELDS	5

/* most bytes of other lines that are shown */
#define OTHER_LIMIT		2000

/* exit statuses of the program */
#define EXIT_USAGE		2

typedef struct ChildMessage
{
	char	   *severity;
	int			sqlstate;
	char	   *primary;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* or NULL */
} ChildMessage;

bool
reader_fail(ReaderFailure *failure, int sqlstate, char *message,
			char *detail, char *hint)
{
	failure->sqlstate = sqlstate;
	failure->message = message;
	failure->detail = detail;
	failure->hint = hint;
	return false;
}

void
reader_raise(const ReaderFailure *failure)
{
	ereport(ERROR,
			(errcode(failure->sqlstate),
			 errmsg_internal("%s", failure->message),
			 failure->detail ? errdetail_internal("%s", failure->detail) : 0,
			 failure->hint ? errhint("%s", failure->hint) : 0));
}

int
reader_memory_mb(void)
{
	return tacho_reader_memory / tacho_max_readers;
}

void
reader_too_many(ReaderFailure *failure)
{
	reader_fail(failure, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
				pstrdup("too many questions to the history at the same time"),
				psprintf("\"tacho.max_readers\" allows %d in the whole server.",
						 tacho_max_readers),
				pstrdup("Try again later, or raise \"tacho.max_readers\". Each question then has a smaller share of \"tacho.reader_memory\"."));
}

void
reader_without_memory(ReaderFailure *failure)
{
	reader_fail(failure, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
				pstrdup("questions to the history have no memory"),
				psprintf("\"tacho.max_readers\" (%d) questions share \"tacho.reader_memory\" (%d MB). Each one needs 1 MB at least.",
						 tacho_max_readers, tacho_reader_memory),
				pstrdup("Raise \"tacho.reader_memory\", or lower \"tacho.max_readers\"."));
}

void
reader_not_started(const char *program, int error_number,
				   ReaderFailure *failure)
{
	char	   *hint = NULL;

	if (strcmp(program, tacho_program_path()) != 0)
		hint = pstrdup(SPAWN_PARENT_HINT);
	else if (error_number == ENOENT || error_number == EACCES)
		hint = pstrdup("Install the tacho program beside the postgres program, or set tacho.program and restart the server.");
	else if (error_number == E2BIG)
		hint = pstrdup("The arguments of the function are too long.");
	reader_fail(failure,
				error_number == E2BIG ? ERRCODE_PROGRAM_LIMIT_EXCEEDED :
				error_number == ENOMEM ? ERRCODE_OUT_OF_MEMORY :
				ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
				psprintf("could not start program \"%s\": %s", program,
						 strerror(error_number)),
				NULL, hint);
}

/* Removes COPY's escapes; the result is in the server encoding. */
static char *
message_text(const char *field, int length)
{
	char	   *result = palloc(length + 1);
	int			to = 0;

	for (int from = 0; from < length; from++)
	{
		char		c = field[from];

		if (c == '\\' && from + 1 < length)
		{
			c = field[++from];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
		}
		result[to++] = c;
	}
	return encoding_to_server(result, to, PG_UTF8);
}

/* Same as message_text(), but NULL for an empty field and for \N. */
static char *
optional_text(const char *field, int length)
{
	if (length == 0 || (length == 2 && strncmp(field, "\\N", 2) == 0))
		return NULL;
	return message_text(field, length);
}

static int
parse_sqlstate(const char *field, int length)
{
	if (length != 5 || strspn(field, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") < 5)
		return ERRCODE_EXTERNAL_ROUTINE_EXCEPTION;
	return MAKE_SQLSTATE(field[0], field[1], field[2], field[3], field[4]);
}

/* Returns false if the line does not have the form of a message. */
static bool
parse_message(const char *line, int length, ChildMessage *message)
{
	const char *field[MESSAGE_FIELDS] = {line, "", "", "", ""};
	int			len[MESSAGE_FIELDS] = {0};
	int			n = 0;

	for (int i = 0; i < length; i++)
	{
		if (line[i] != '\t')
			len[n]++;
		else if (n + 1 < MESSAGE_FIELDS)
			field[++n] = line + i + 1;
		else
			return false;
	}
	if (n < 2 || len[2] == 0)
		return false;
	message->severity = pnstrdup(field[0], len[0]);
	message->sqlstate = parse_sqlstate(field[1], len[1]);
	message->primary = message_text(field[2], len[2]);
	message->detail = optional_text(field[3], len[3]);
	message->hint = optional_text(field[4], len[4]);
	return true;
}

static void
pass_on(const ChildMessage *message, int level)
{
	ereport(level,
			(errcode(message->sqlstate),
			 errmsg_internal("%s", message->primary),
			 message->detail ? errdetail_internal("%s", message->detail) : 0,
			 message->hint ? errhint("%s", message->hint) : 0));
}

/* Takes one line; a line of another shape is appended to *other. */
static void
take_message(const char *line, int length, StringInfo other,
			 ReaderFailure *failure)
{
	ChildMessage message;

	if (parse_message(line, length, &message))
	{
		if (strcmp(message.severity, "NOTICE") == 0)
			pass_on(&message, NOTICE);
		else if (strcmp(message.severity, "WARNING") == 0)
			pass_on(&message, WARNING);
		else if (strcmp(message.severity, "ERROR") == 0)
			reader_fail(failure, message.sqlstate, message.primary,
						message.detail, message.hint);
		return;
	}
	if (length > 0 && other->len + length < OTHER_LIMIT)
	{
		if (other->len > 0)
			appendStringInfoChar(other, '\n');
		appendStringInfoString(other, message_text(line, length));
	}
}

#define MEMORY_HINT "Use a shorter window or fewer rows."

/*
 * True if the child ended for lack of memory. Its allocator aborts when memory
 * is refused, by our limit or by the operating system.
 */
static bool
ran_out_of_memory(int status, StringInfo other)
{
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
			strstr(other->data, "memory allocation of") != NULL);
}

/*
 * Hint for a child that was ended by a signal, or NULL. The kernel also sends
 * signals if it lacks the memory to load the program or to extend its stack.
 */
static char *
signal_hint(int signal)
{
	if (signal == SIGKILL)
		return pstrdup("It was killed, or the system ran out of memory. See the kernel log.");
	if (signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT)
		return psprintf("It may have been refused memory (limit: %d MB). " MEMORY_HINT,
						reader_memory_mb());
	return NULL;
}

/* Sets the failure of a child that ended without an error message. */
static void
unexplained_end(const char *program, int status, StringInfo other,
				ReaderFailure *failure)
{
	char	   *detail = other->len > 0 ? other->data : NULL;

	if (ran_out_of_memory(status, other))
		reader_fail(failure, ERRCODE_OUT_OF_MEMORY,
					pstrdup("tacho program ran out of memory"),
					psprintf("The limit is %d MB.", reader_memory_mb()),
					pstrdup(MEMORY_HINT));
	else if (WIFSIGNALED(status))
		reader_fail(failure, ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
					psprintf("program \"%s\" was terminated by signal %d: %s",
							 program, WTERMSIG(status),
							 pg_strsignal(WTERMSIG(status))),
					detail, signal_hint(WTERMSIG(status)));
	else
		reader_fail(failure, ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
					psprintf("program \"%s\" failed with exit code %d",
							 program, WEXITSTATUS(status)),
					detail,
					WEXITSTATUS(status) == EXIT_USAGE ?
					pstrdup("The tacho program and the extension have different versions. Install both from the same release.") :
					NULL);
}

void
reader_messages(const char *program, StringInfo errors, int status,
				ReaderFailure *failure)
{
	StringInfoData other;
	char	   *line = errors->data;
	char	   *end = errors->data + errors->len;

	initStringInfo(&other);
	while (line < end)
	{
		char	   *newline = memchr(line, '\n', end - line);
		char	   *stop = newline ? newline : end;

		take_message(line, stop - line, &other, failure);
		line = stop + 1;
	}
	if (status != 0 && failure->message == NULL)
		unexplained_end(program, status, &other, failure);
}
