/*
 * faults.c
 *	  Lets something go wrong at an allocation that tacho makes in a backend.
 *
 * The library is preloaded before libc (LD_PRELOAD) and replaces malloc. It
 * counts the allocations of tacho's library above 8 kB, and acts at the one
 * that faults_arm() has named. The server takes a block of its own for each of
 * them. Blocks for smaller allocations do not count: when one is full depends
 * on all that the session has done before. Their sizes are powers of two. For 138_plan_faults.pl, which builds
 * it; not part of the extension.
 *
 * Copyright (c) 2026, tacho contributors
 */
#define _GNU_SOURCE
#include "postgres.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include "fmgr.h"

#define FRAMES 8

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(faults_arm);
PG_FUNCTION_INFO_V1(faults_left);

extern void *__libc_malloc(size_t size);

enum Fault
{
	REFUSE_MEMORY, CANCEL, TERMINATE
};

static int	fault;
static int	left = 0;			/* allocations until it happens; 0 = none will */
static bool looking = false;

static bool
allocates(const char *function)
{
	return function != NULL &&
		(strncmp(function, "MemoryContextAlloc", 18) == 0 || strncmp(function, "palloc", 6) == 0);
}

/* True if tacho's library has called the function that allocates. */
static bool
is_for_tacho(void)
{
	void	   *frames[FRAMES];
	int			count = backtrace(frames, FRAMES);
	Dl_info		info;
	bool		allocator = false;

	for (int i = 1; i < count; i++)
	{
		if (dladdr(frames[i], &info) == 0)
			return false;
		if (allocator && !allocates(info.dli_sname))
			return strstr(info.dli_fname, "/tacho.so") != NULL;
		allocator = allocates(info.dli_sname);
	}
	return false;
}

/* True if a block of this size holds one allocation. */
static bool
is_own_block(size_t size)
{
	return size > 8192 && (size & (size - 1)) != 0;
}

void *
malloc(size_t size)
{
	bool		now = false;

	if (left > 0 && !looking && is_own_block(size))
	{
		looking = true;
		now = is_for_tacho() && --left == 0;
		looking = false;
	}
	if (now && fault == REFUSE_MEMORY)
		return NULL;
	if (now)
		kill(getpid(), fault == CANCEL ? SIGINT : SIGTERM);
	return __libc_malloc(size);
}

Datum
faults_arm(PG_FUNCTION_ARGS)
{
	fault = PG_GETARG_INT32(0);
	left = PG_GETARG_INT32(1);
	PG_RETURN_VOID();
}

/* The number of allocations until the fault; 0 = it has happened. */
Datum
faults_left(PG_FUNCTION_ARGS)
{
	int			was = left;

	left = 0;
	PG_RETURN_INT32(was);
}
