/*
 * status.c
 *	  Tests of the sampler's status (core/status.c): a process that is stopped
 *	  in the middle of a copy blocks no other, and no copy mixes two statuses.
 *	  Prints a line a test, "ok - name" or the difference; built and run by
 *	  181_units.pl.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

/* called in the middle of a copy */
static void (*meanwhile) (void);

static void
copy_in_two(void *to, const void *from, size_t size)
{
	void		(*happens) (void) = meanwhile;

	meanwhile = NULL;
	memmove(to, from, size / 2);
	if (happens)
		happens();
	memmove((char *) to + size / 2, (const char *) from + size / 2,
			size - size / 2);
}

#undef memcpy
#define memcpy copy_in_two
#include "core/status.c"

#undef printf

static TachoShared shared;
TachoShared *tacho_shared = &shared;
static int64 seen;

/* Publishes a status whose first and last fields are this number. */
static void
publish(int64 number)
{
	TachoStatus status = {.worker_pid = number, .writer_error_time = number};

	status_publish(&status);
}

static void
publish_thrice(void)
{
	for (int64 number = 2; number <= 4; number++)
		publish(number);
}

/* The number of the published status, -1 if its fields differ. */
static int64
read_number(void)
{
	TachoStatus status;

	tacho_status_read(&status);
	return status.worker_pid == status.writer_error_time ?
		status.worker_pid : -1;
}

static void
read_meanwhile(void)
{
	seen = read_number();
}

static void
is(int64 got, int64 expected, const char *name)
{
	if (got == expected)
		printf("ok - %s\n", name);
	else
		printf("not ok - %s: got %lld, expected %lld\n", name,
			   (long long) got, (long long) expected);
}

int
main(void)
{
	publish(1);
	is(read_number(), 1, "a reader reads the published value");
	meanwhile = publish_thrice;
	is(read_number(), 4, "the sampler goes on while a reader is stopped, and the reader reads again");
	meanwhile = read_meanwhile;
	publish(5);
	is(seen, 4, "a reader has the status before while the sampler is stopped");
	is(read_number(), 5, "a reader reads the next value afterwards");
	return 0;
}
