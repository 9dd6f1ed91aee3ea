/*
 * writer_messages.c
 *	  Messages of the tape writer on its standard error, for the server's log.
 *
 * Locking: none. Memory: static. A line beyond LINE_BYTES is cut.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"

#include "core/spawner.h"
#include "core/status.h"
#include "history/disks.h"
#include "history/writer_messages.h"

#define LINE_BYTES		2000

/*
 * limits a turn, so that an endless stream of messages cannot stop the
 * sampler
 */
#define READS_A_TURN	16

static int	from_errors = -1;
static char line[LINE_BYTES];
static int	line_length = 0;
static char trouble[STATUS_TEXT_SIZE] = "";

/* The text after a severity; NULL if the line has another severity. */
static const char *
text_of(const char *severity)
{
	int			length = strlen(severity);

	return strncmp(line, severity, length) == 0 ? line + length : NULL;
}

static void
log_text(int level, const char *text)
{
	/* a cancel must not become an error here */
	HOLD_INTERRUPTS();
	ereport(level, (errmsg("tape writer: %s", text)));
	RESUME_INTERRUPTS();
}

static void
take_line(void)
{
	const char *text;

	line[line_length] = '\0';
	line_length = 0;
	if (line[0] == '\0')
		return;
	if ((text = text_of("DISK:  ")) != NULL)
		disks_take(text);
	else if ((text = text_of("TROUBLE:  ")) != NULL)
		strlcpy(trouble, text, sizeof(trouble));
	else if ((text = text_of("LOG:  ")) != NULL)
		log_text(LOG, text);
	else if ((text = text_of("WARNING:  ")) != NULL ||
			 (text = text_of("ERROR:  ")) != NULL)
		log_text(WARNING, text);
	else
		log_text(LOG, line);
}

static void
take_byte(char byte)
{
	if (byte == '\n')
		take_line();
	else if (line_length < LINE_BYTES - 1)
		line[line_length++] = byte == '\0' ? ' ' : byte;
}

void
writer_messages_begin(int descriptor)
{
	from_errors = descriptor;
	line_length = 0;
	trouble[0] = '\0';
}

void
writer_messages_read(void)
{
	char		buffer[4096];

	for (int i = 0; i < READS_A_TURN && from_errors >= 0; i++)
	{
		ssize_t		got = read(from_errors, buffer, sizeof(buffer));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		for (ssize_t at = 0; at < got; at++)
			take_byte(buffer[at]);
	}
}

void
writer_messages_end(void)
{
	writer_messages_read();
	if (line_length > 0)
		take_line();
	spawn_close(&from_errors);
}

const char *
writer_messages_trouble(void)
{
	return trouble;
}
