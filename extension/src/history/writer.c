/*
 * writer.c
 *	  Runs "tacho tape-writer" and feeds it frames through a pipe.
 *
 * spawner.c starts the child so that signals to the server's processes do not
 * reach it. The child ends when its pipe is closed, after it has written
 * everything in the pipe. If the sampler ends before, the child's parent
 * waits for it. The child's messages go into the server's log
 * (writer_messages.h).
 *
 * While recording is paused the writer reads no frames, so it does not get new
 * settings. Therefore the writer is replaced. The hello frame for the next
 * writer has the new settings.
 *
 * Locking: none. Memory: frames are allocated one by one in the context that
 * was current at writer_init().
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/settings.h"
#include "core/spawner.h"
#include "history/writer.h"
#include "history/writer_messages.h"

#define BACKOFF_FIRST_MS	1000
#define BACKOFF_LAST_MS		60000
#define COMPLAIN_EVERY_MS	3600000
#define SILENT_AFTER_MS		30000
#define PIPE_BYTES			(1024 * 1024)
#define ACK_BYTES			32
#define DESCRIPTORS			4

/* exit codes and acknowledgement codes of the writer */
#define EXIT_USAGE			2
#define EXIT_LOCKED			5
#define EXIT_MOVED			6
#define ACK_WRITTEN			0
#define ACK_PAUSED			1

static const uint8 ack_magic[4] = {0xF1, 0x54, 0x43, 0x41};

typedef struct QueuedFrame
{
	dlist_node	node;
	uint64		sequence;
	int			length;
	char		bytes[FLEXIBLE_ARRAY_MEMBER];
} QueuedFrame;

static MemoryContext context;
static WriterHello make_hello;
static uint64 incarnation;

/* child */
static bool running = false;	/* started and not reaped */
static Spawned child;			/* valid if `running` */
static int	to_child = -1;
static int	from_child = -1;
/* the child's pipe was closed, so that the next writer gets new settings */
static bool replacing = false;
static TimestampTz child_started = 0;
static int64 starts = 0;
static int64 start_at_ms = 0;	/* earliest time of the next start */
static int64 backoff_ms = BACKOFF_FIRST_MS;
static int64 past_cpu_us = 0;	/* children that have ended */

/* frames not acknowledged, oldest first */
static dlist_head frames = DLIST_STATIC_INIT(frames);
static int64 frame_bytes = 0;
static uint64 next_sequence = 1;
static uint64 last_sequence = 0;	/* the last acknowledged frame */
static uint64 settings_sequence = 0;	/* the newest frame with settings */
static uint64 greeted_first = 0;	/* the first frame sent to this writer */
static uint64 greeted_next = 0; /* `next_sequence` when its hello was made */
static int64 acknowledged = 0;
static int64 bytes_made = 0;
/*
 * first frame that was not sent to a writer that still runs at the end; it may
 * still write earlier frames
 */
static uint64 left_with_child = 0;

/*
 * the data being sent: the hello, then frames; `sending` is the first frame
 * that was not sent completely, NULL when all were; the other two count bytes
 */
static StringInfoData hello;
static int	hello_sent = 0;
static QueuedFrame *sending = NULL;
static int	sent_of_it = 0;

/* acknowledgements */
static char ack[ACK_BYTES];
static int	ack_filled = 0;
static int	ack_code = ACK_WRITTEN;
static int64 tape_bytes = 0;
/* time of the last acknowledgement, or of an empty queue */
static int64 heard_ms = 0;

/* trouble */
static char trouble[STATUS_TEXT_SIZE] = "";	/* now; "" = none */
static bool trouble_logged = false;
static TimestampTz trouble_since = 0;
static char last_trouble[STATUS_TEXT_SIZE] = "";
static TimestampTz last_trouble_time = 0;
static int64 complained_ms = 0;
static int64 not_complained = 0;

void
writer_init(uint64 life, WriterHello hello_function)
{
	context = CurrentMemoryContext;
	incarnation = life;
	make_hello = hello_function;
	initStringInfo(&hello);
}

/*
 * Notes the trouble and logs it: new trouble at once, the same trouble once
 * an hour with the number of repetitions.
 */
static void
complain(int64 now_ms, const char *text, const char *hint)
{
	bool		same = strcmp(text, last_trouble) == 0;

	if (trouble[0] == '\0')
		trouble_since = GetCurrentTimestamp();
	strlcpy(trouble, text, sizeof(trouble));
	strlcpy(last_trouble, text, sizeof(last_trouble));
	last_trouble_time = GetCurrentTimestamp();
	if (same && complained_ms != 0 &&
		now_ms - complained_ms < COMPLAIN_EVERY_MS)
	{
		not_complained++;
		return;
	}
	/* a cancel must not become an error here */
	HOLD_INTERRUPTS();
	if (same && not_complained > 0)
		ereport(WARNING,
				(errmsg("history is not being written: %s", text),
				 errdetail("This happened " INT64_FORMAT " more times since it was last reported.",
						   not_complained),
				 errhint("%s", hint)));
	else
		ereport(WARNING,
				(errmsg("history is not being written: %s", text),
				 errdetail("The server itself is not affected."),
				 errhint("%s", hint)));
	RESUME_INTERRUPTS();
	trouble_logged = true;
	complained_ms = now_ms;
	not_complained = 0;
}

/* Logs the end of a trouble, for readers of the log who saw it begin. */
static void
end_trouble(void)
{
	long		seconds;
	int			microseconds;

	if (trouble[0] == '\0')
		return;
	TimestampDifference(trouble_since, GetCurrentTimestamp(), &seconds,
						&microseconds);
	if (trouble_logged)
	{
		HOLD_INTERRUPTS();
		ereport(LOG,
				(errmsg("history is being written again"),
				 errdetail("It was not written for %ld seconds: %s.", seconds,
						   trouble)));
		RESUME_INTERRUPTS();
	}
	trouble_logged = false;
	trouble[0] = '\0';
}

typedef struct Pipes
{
	int			down[2];		/* frames */
	int			up[2];			/* acknowledgements */
	int			errors[2];		/* messages */
} Pipes;

static void
close_pipes(Pipes *pipes)
{
	for (int end = PIPE_READ; end <= PIPE_WRITE; end++)
	{
		spawn_close(&pipes->down[end]);
		spawn_close(&pipes->up[end]);
		spawn_close(&pipes->errors[end]);
	}
}

/*
 * Our ends do not block. Nor does the writer's end of the message pipe,
 * because the writer must not wait if no process reads its messages.
 */
static bool
make_pipes(Pipes *pipes)
{
	memset(pipes, -1, sizeof(*pipes));
	if (!spawn_pipe(pipes->down) || !spawn_pipe(pipes->up) ||
		!spawn_pipe(pipes->errors))
		return false;
	(void) fcntl(pipes->down[PIPE_WRITE], F_SETFL, O_NONBLOCK);
	(void) fcntl(pipes->up[PIPE_READ], F_SETFL, O_NONBLOCK);
	(void) fcntl(pipes->errors[PIPE_READ], F_SETFL, O_NONBLOCK);
	(void) fcntl(pipes->errors[PIPE_WRITE], F_SETFL, O_NONBLOCK);
#ifdef F_SETPIPE_SZ
	(void) fcntl(pipes->down[PIPE_WRITE], F_SETPIPE_SZ, PIPE_BYTES);
#endif
	return true;
}

/*
 * Starts the writer. Returns NULL, or the path of the program that failed to
 * start.
 */
static const char *
run_writer(Pipes *pipes)
{
	char	   *arguments[] = {
		"tacho", "tape-writer", "--directory",
		unconstify(char *, tacho_directory_path()), NULL
	};

	return spawn_program(&child, tacho_program_path(), arguments,
						 pipes->down[PIPE_READ], pipes->up[PIPE_WRITE],
						 pipes->errors[PIPE_WRITE], false);
}

static void
plan_restart(int64 now_ms)
{
	start_at_ms = now_ms + backoff_ms;
	backoff_ms = Min(backoff_ms * 2, BACKOFF_LAST_MS);
}

static void
cannot_start(int64 now_ms, const char *what, const char *program, int error)
{
	char		text[STATUS_TEXT_SIZE];
	const char *hint = "The sampler will try again.";

	if (strcmp(program, tacho_program_path()) != 0)
		hint = SPAWN_PARENT_HINT;
	else if (error == ENOENT)
		hint = "Install the tacho program there, or set \"tacho.program\".";
	snprintf(text, sizeof(text), "could not %s \"%s\": %s", what, program,
			 strerror(error));
	complain(now_ms, text, hint);
	plan_restart(now_ms);
}

/* Sends a new writer a hello frame and all unacknowledged frames. */
static void
begin_sending(void)
{
	uint64		first = next_sequence;

	if (!dlist_is_empty(&frames))
		first = dlist_head_element(QueuedFrame, node, &frames)->sequence;
	make_hello(&hello, first, starts > 1);
	hello_sent = 0;
	sent_of_it = 0;
	sending = dlist_is_empty(&frames) ? NULL :
		dlist_head_element(QueuedFrame, node, &frames);
	ack_filled = 0;
	ack_code = ACK_WRITTEN;
	greeted_first = first;
	greeted_next = next_sequence;
}

static void
start_child(int64 now_ms)
{
	Pipes		pipes;
	const char *failed;

	if (!make_pipes(&pipes))
	{
		cannot_start(now_ms, "make pipes for", tacho_program_path(), errno);
		close_pipes(&pipes);
		return;
	}
	failed = run_writer(&pipes);
	if (failed != NULL)
	{
		cannot_start(now_ms, "run", failed, errno);
		close_pipes(&pipes);
		return;
	}
	for (int i = 0; i < DESCRIPTORS; i++)
		ReserveExternalFD();
	to_child = pipes.down[PIPE_WRITE];
	from_child = pipes.up[PIPE_READ];
	writer_messages_begin(pipes.errors[PIPE_READ]);
	pipes.down[PIPE_WRITE] = pipes.up[PIPE_READ] = pipes.errors[PIPE_READ] = -1;
	close_pipes(&pipes);
	running = true;
	starts++;
	child_started = GetCurrentTimestamp();
	heard_ms = now_ms;
	begin_sending();
}

static void
forget_child(void)
{
	if (!running)
		return;
	running = false;
	replacing = false;
	spawn_let_go(&child);
	spawn_close(&to_child);
	spawn_close(&from_child);
	writer_messages_end();
	for (int i = 0; i < DESCRIPTORS; i++)
		ReleaseExternalFD();
	sending = NULL;
}

/* Reports how a writer ended unexpectedly. */
static void
report_end(int64 now_ms, int status)
{
	char		text[STATUS_TEXT_SIZE];
	const char *reason = writer_messages_trouble();
	const char *hint = "See the messages of the tape writer in the server log.";

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "the tape writer was terminated by signal %d",
				 WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_LOCKED)
	{
		snprintf(text, sizeof(text), "directory \"%s\" is in use by another tape writer",
				 tacho_directory_path());
		hint = "Use a separate \"tacho.directory\" for each server.";
	}
	else if (WEXITSTATUS(status) == EXIT_MOVED)
	{
		snprintf(text, sizeof(text), "directory \"%s\" was removed or replaced",
				 tacho_directory_path());
		hint = "History goes on in a directory of that name, which is made if it is missing. The earlier history is where the directory was moved to.";
	}
	else if (WEXITSTATUS(status) == EXIT_USAGE)
	{
		snprintf(text, sizeof(text),
				 "program \"%s\" does not support writing history",
				 tacho_program_path());
		hint = "Install a tacho program of the same version as the extension.";
	}
	else if (reason[0] != '\0')
	{
		strlcpy(text, reason, sizeof(text));
		hint = "The sampler will try again.";
	}
	else
		snprintf(text, sizeof(text),
				 "the tape writer of directory \"%s\" ended with exit code %d",
				 tacho_directory_path(), WEXITSTATUS(status));
	complain(now_ms, text, hint);
}

/* CPU time of all reaped children. */
static int64
children_cpu_us(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
		return 0;
	return ((int64) usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* Plans the next start after a writer that ended by itself. */
static void
plan_next(int64 now_ms, int status)
{
	bool		at_once = WIFEXITED(status) &&
		WEXITSTATUS(status) == EXIT_MOVED && backoff_ms == BACKOFF_FIRST_MS;

	report_end(now_ms, status);
	plan_restart(now_ms);
	if (at_once)
		start_at_ms = now_ms;
}

static void
reap_child(int64 now_ms)
{
	bool		expected = replacing;

	if (!running || !spawn_ended(&child) || !spawn_reap(&child))
		return;
	forget_child();
	past_cpu_us = children_cpu_us();
	if (child.error != 0)
	{
		starts--;
		cannot_start(now_ms, "run", tacho_program_path(), child.error);
	}
	else if (expected)
		start_at_ms = now_ms;
	else
		plan_next(now_ms, child.status);
}

static void
release_until(uint64 sequence)
{
	while (!dlist_is_empty(&frames))
	{
		QueuedFrame *frame = dlist_head_element(QueuedFrame, node, &frames);

		/* this writer cannot have a frame that was not sent to it */
		if (frame->sequence > sequence || frame == sending)
			break;
		dlist_delete(&frame->node);
		frame_bytes -= frame->length;
		acknowledged++;
		pfree(frame);
	}
}

static uint64
ack_number(int offset, int width)
{
	uint64		value = 0;

	for (int i = width - 1; i >= 0; i--)
		value = (value << 8) | (uint8) ack[offset + i];
	return value;
}

/*
 * Reports why the newest frame was not written. The writer wrote its message
 * to its pipe before it acknowledged the frame.
 */
static void
report_code(int64 now_ms)
{
	char		text[STATUS_TEXT_SIZE];
	const char *reason;

	writer_messages_read();
	reason = writer_messages_trouble();
	if (ack_code == ACK_PAUSED)
	{
		snprintf(text, sizeof(text), "recording is paused for lack of space%s%s",
				 reason[0] != '\0' ? ": " : "", reason);
		complain(now_ms, text,
				 "Free space, or adjust \"tacho.min_free_space\" or \"tacho.retention_size\".");
	}
	else
		complain(now_ms, reason[0] != '\0' ? reason :
				 "the tape writer reported an error",
				 "The frames are kept in memory and will be written again.");
}

static void
take_ack(int64 now_ms)
{
	if (memcmp(ack, ack_magic, 4) != 0 || ack_number(8, 8) != incarnation)
		return;
	ack_code = (int) ack_number(4, 4);
	tape_bytes = (int64) ack_number(24, 8);
	last_sequence = ack_number(16, 8);
	heard_ms = now_ms;
	release_until(last_sequence);
	if (ack_code == ACK_WRITTEN)
	{
		backoff_ms = BACKOFF_FIRST_MS;
		end_trouble();
	}
	else
		report_code(now_ms);
}

static void
read_acks(int64 now_ms)
{
	while (from_child >= 0)
	{
		ssize_t		got = read(from_child, ack + ack_filled,
							   ACK_BYTES - ack_filled);

		if (got <= 0)
			return;				/* nothing there, or closed: reaped later */
		ack_filled += got;
		if (ack_filled == ACK_BYTES)
		{
			take_ack(now_ms);
			ack_filled = 0;
		}
	}
}

/*
 * Writes `bytes` from *sent on, and moves *sent. Returns false when the pipe
 * takes no more.
 */
static bool
send_piece(const char *bytes, int length, int *sent)
{
	while (*sent < length)
	{
		ssize_t		put = write(to_child, bytes + *sent, length - *sent);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		*sent += put;
	}
	return true;
}

static void
send_frames(void)
{
	if (to_child < 0 || !send_piece(hello.data, hello.len, &hello_sent))
		return;
	while (sending != NULL &&
		   send_piece(sending->bytes, sending->length, &sent_of_it))
	{
		sent_of_it = 0;
		sending = dlist_has_next(&frames, &sending->node) ?
			dlist_container(QueuedFrame, node,
							dlist_next_node(&frames, &sending->node)) : NULL;
	}
}

/*
 * True if the writer does not use the newest settings. Then it has not
 * acknowledged the frame with these settings, and its hello does not help.
 * Either the hello is older than that frame, or the writer has since read a
 * repeated frame with older settings.
 */
static bool
writer_has_old_settings(void)
{
	return settings_sequence > last_sequence &&
		(settings_sequence >= greeted_next || last_sequence >= greeted_first);
}

/*
 * A writer that waits for disk space does not read the frame with new
 * settings, although these may end its wait.
 */
static void
replace_deaf_writer(void)
{
	if (!running || replacing || ack_code != ACK_PAUSED ||
		!writer_has_old_settings())
		return;
	replacing = true;
	spawn_close(&to_child);
}

/* Reports a writer that runs but acknowledges nothing. */
static void
watch_silence(int64 now_ms)
{
	char		text[STATUS_TEXT_SIZE];

	if (!running || dlist_is_empty(&frames))
		heard_ms = now_ms;
	if (now_ms - heard_ms < SILENT_AFTER_MS)
		return;
	snprintf(text, sizeof(text), "the tape writer (process %d) does not answer",
			 (int) child.program);
	complain(now_ms, text, "Frames are kept in memory until the buffer is full.");
}

static void
report_status(TachoStatus *status)
{
	status->past_writers_cpu_us = past_cpu_us;
	status->writer_pid = running ? (int) child.program : 0;
	status->writer_starts = starts;
	status->writer_started = child_started;
	status->frames_made = (int64) next_sequence - 1;
	status->frames_written = acknowledged;
	status->bytes_made = bytes_made;
	status->bytes_buffered = frame_bytes;
	status->tape_bytes = tape_bytes;
	strlcpy(status->reason, trouble, STATUS_TEXT_SIZE);
	strlcpy(status->writer_error, last_trouble, STATUS_TEXT_SIZE);
	status->writer_error_time = last_trouble_time;
}

void
writer_turn(int64 now_ms, TachoStatus *status)
{
	read_acks(now_ms);
	writer_messages_read();
	replace_deaf_writer();
	reap_child(now_ms);
	if (!running && now_ms >= start_at_ms)
		start_child(now_ms);
	send_frames();
	watch_silence(now_ms);
	report_status(status);
}

void
writer_settings_changed(void)
{
	settings_sequence = next_sequence;
}

uint64
writer_next_sequence(void)
{
	return next_sequence;
}

uint64
writer_first_unacknowledged(void)
{
	return dlist_is_empty(&frames) ? next_sequence :
		dlist_head_element(QueuedFrame, node, &frames)->sequence;
}

/* The first frame that was not completely sent to the writer. */
static uint64
first_unsent(void)
{
	return sending ? sending->sequence : next_sequence;
}

uint64
writer_first_unwritten(void)
{
	uint64		first = writer_first_unacknowledged();

	if (running)
		first = Max(first, first_unsent());
	return Max(first, left_with_child);
}

bool
writer_has_room(void)
{
	return frame_bytes < WRITER_BUFFER_BYTES / 2;
}

bool
writer_put(const char *bytes, int length)
{
	QueuedFrame *frame;

	if (frame_bytes + length > WRITER_BUFFER_BYTES)
		return false;
	frame = MemoryContextAlloc(context, offsetof(QueuedFrame, bytes) + length);
	frame->sequence = next_sequence++;
	frame->length = length;
	memcpy(frame->bytes, bytes, length);
	dlist_push_tail(&frames, &frame->node);
	frame_bytes += length;
	bytes_made += length;
	if (running && sending == NULL)
	{
		sending = frame;
		sent_of_it = 0;
	}
	return true;
}

bool
writer_is_behind(void)
{
	return running && (sending != NULL || hello_sent < hello.len);
}

int64
writer_starts(void)
{
	return starts;
}

void
writer_close(int patience_ms)
{
	for (int waited = 0; running && waited < patience_ms; waited += 5)
	{
		read_acks(0);
		writer_messages_read();
		send_frames();
		if (!writer_is_behind())
			spawn_close(&to_child);
		if (spawn_ended(&child) && spawn_reap(&child))
		{
			read_acks(0);
			forget_child();
		}
		else
			pg_usleep(5000L);
	}
	if (running)
		left_with_child = first_unsent();
	forget_child();
}
