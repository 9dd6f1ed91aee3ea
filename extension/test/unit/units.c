/*
 * units.c
 *	  Tests of the parts of the sampler that need no server: slot_clock.c,
 *	  budget.c, host.c, spawner.c. Prints a line a test, "ok - name" or the
 *	  difference.
 *
 * usage: units DIRECTORY, which has the machines that 181_units.pl makes.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/host.h"
#include "core/spawner.h"
#include "sampler/budget.h"
#include "sampler/slot_clock.h"

/* provided by the server's libraries otherwise */
#undef printf
#undef snprintf
#undef vsnprintf

int
pg_snprintf(char *text, size_t size, const char *format,...)
{
	va_list		arguments;
	int			length;

	va_start(arguments, format);
	length = vsnprintf(text, size, format, arguments);
	va_end(arguments);
	return length;
}

#define SECOND	INT64CONST(1000000)

static void
is(int64 got, int64 expected, const char *name)
{
	if (got == expected)
		printf("ok - %s\n", name);
	else
		printf("not ok - %s: got %lld, expected %lld\n", name,
			   (long long) got, (long long) expected);
}

/* ---- slot_clock.c ---- */

static void
ticks_are_taken_once_a_slot(void)
{
	SlotClock	clock;
	SlotTick	due;

	slot_clock_init(&clock, SECOND, 10 * SECOND + 1, 0.5);
	is(slot_clock_wait_us(&clock, 10 * SECOND + 1), 1498999,
	   "the first tick stands in the next whole slot");
	due = slot_clock_take(&clock, 11499000, 0, 0.0);
	is(due.tick, 1, "ticks count from 1");
	is(due.slot_time, 11000, "a slot is called by its begin");
	is(due.elapsed_ms, 0, "the first tick has no predecessor");
	is(slot_clock_wait_us(&clock, 11600000), 400000,
	   "there is no second tick in a slot");
	due = slot_clock_take(&clock, 12 * SECOND, 501000, 0.0);
	is(due.tick, 2, "the next slot has the next number");
	is(due.elapsed_ms, 501, "a tick has the time since the tick before");
	is(due.late, 0, "a tick taken when planned is not late");
}

static void
missed_slots_leave_holes(void)
{
	SlotClock	clock;
	SlotTick	due;

	slot_clock_init(&clock, SECOND, 10 * SECOND, 0.0);
	(void) slot_clock_take(&clock, 10 * SECOND, 0, 0.0);
	due = slot_clock_take(&clock, 14 * SECOND, 4 * SECOND, 0.0);
	is(due.tick, 5, "numbers of missed slots are left out");
	is(due.missed, 3, "missed slots are counted");
	is(due.late, 1, "a tick behind its slot is late");
	is(due.step_us, 0, "time that passed is no step of the clock");
}

static void
steps_of_the_clock_are_seen(void)
{
	SlotClock	clock;
	SlotTick	due;

	slot_clock_init(&clock, SECOND, 1000 * SECOND, 0.0);
	(void) slot_clock_take(&clock, 1000 * SECOND, 0, 0.0);
	due = slot_clock_take(&clock, 4601 * SECOND, SECOND, 0.0);
	is(due.step_us, 3600 * SECOND, "a step forward of the clock has its length");
	is(due.tick, 2, "a step forward of the clock leaves out no number");
	is(slot_clock_wait_us(&clock, 902 * SECOND), SECOND,
	   "after a step back the next slot is the next by the new time");
	due = slot_clock_take(&clock, 903 * SECOND, 2 * SECOND, 0.0);
	is(due.step_us, -3699 * SECOND, "a step back of the clock is negative");
	is(due.tick, 3, "numbers go on after a step back");
	due = slot_clock_take(&clock, 904 * SECOND + SECOND / 2, 3 * SECOND, 0.0);
	is(due.step_us, 0, "half a second is no step of the clock");
}

static void
another_interval_goes_on_counting(void)
{
	SlotClock	clock;
	SlotTick	due;

	slot_clock_init(&clock, SECOND, 10 * SECOND, 0.0);
	(void) slot_clock_take(&clock, 10 * SECOND, 0, 0.0);
	slot_clock_set_interval(&clock, SECOND / 10, 10 * SECOND + 250000, 0.0);
	is(slot_clock_wait_us(&clock, 10 * SECOND + 250000), 50000,
	   "a new interval begins with its next slot");
	due = slot_clock_take(&clock, 10 * SECOND + 300000, 100000, 0.0);
	is(due.tick, 2, "a new interval leaves no hole");
	is(due.slot_time, 10300, "ticks stand on the grid of the new interval");
}

/* ---- budget.c ---- */

/* Lets seconds pass while the sampler uses a share of a CPU. */
static int
spend(Budget *budget, int seconds, double percent, double limit, int64 *boot,
	  int64 *cpu)
{
	int			changes = 0;

	for (int i = 0; i < seconds; i++)
	{
		*boot += SECOND;
		*cpu += (int64) (percent * SECOND / 100);
		changes += budget_read(budget, *boot, *cpu, limit, 1000);
	}
	return changes;
}

static void
a_budget_doubles_and_halves(void)
{
	Budget		budget;
	int64		boot = SECOND;
	int64		cpu = 0;

	budget_init(&budget);
	is(spend(&budget, 100, 2.0, 2.0, &boot, &cpu), 0,
	   "at its limit the interval stays");
	is(spend(&budget, 1, 4.0, 2.0, &boot, &cpu), 1, "above its limit the interval changes");
	is(budget_interval_ms(&budget, 1000), 2000, "the interval becomes twice as long");
	is(spend(&budget, 59, 0.5, 2.0, &boot, &cpu), 0, "the interval stays until calm has lasted");
	is(spend(&budget, 1, 0.5, 2.0, &boot, &cpu), 1, "a minute of calm changes the interval");
	is(budget_interval_ms(&budget, 1000), 1000, "after a minute of calm the interval is as before");
	(void) spend(&budget, 600, 50.0, 2.0, &boot, &cpu);
	is(budget_interval_ms(&budget, 1000), 60000, "the longest interval is a minute");
	is(spend(&budget, 1, 50.0, 0.0, &boot, &cpu), 1, "a limit that is switched off changes the interval");
	is(budget_interval_ms(&budget, 1000), 1000, "without a limit the interval is that of the setting");
}

/* ---- host.c ---- */

static const char *directory;

static const char *
machine(const char *name)
{
	static char root[1024];

	snprintf(root, sizeof(root), "%s/%s", directory, name);
	return root;
}

static void
quotas_of_cgroups_are_found(void)
{
	is(host_cpu_quota_x100(machine("v2")), 150, "cgroup 2: the group has its quota");
	is(host_cpu_quota_x100(machine("v2_parent")), 50,
	   "cgroup 2: the quota is the least of the group and its parents");
	is(host_cpu_quota_x100(machine("v2_none")), HOST_NOT_KNOWN,
	   "cgroup 2: max is no quota");
	is(host_cpu_quota_x100(machine("v1")), 250, "cgroup 1: the group has its quota");
	is(host_cpu_quota_x100(machine("v1_container")), 25,
	   "cgroup 1: a container has the quota of its mount");
	is(host_cpu_quota_x100(machine("v1_none")), HOST_NOT_KNOWN,
	   "cgroup 1: -1 is no quota");
	is(host_cpu_quota_x100(machine("nothing")), HOST_NOT_KNOWN,
	   "without /proc there is no quota");
}

static void
the_host_is_read(void)
{
	int64		tick_ms = 1000 / sysconf(_SC_CLK_TCK);
	Host		host;
	HostProcess process;

	host_read(machine("v2"), &host);
	is(host.load_1, 150, "load of 1 minute");
	is(host.load_15, 25, "load of 15 minutes");
	is(host.tasks_runnable, 3, "runnable tasks");
	is(host.cpu_user, 110 * tick_ms, "user and nice time");
	is(host.cpu_system, 1023 * tick_ms, "system and interrupt time");
	is(host.cpu_idle, 4000 * tick_ms, "idle time");
	is(host.cpu_iowait, 500 * tick_ms, "time waiting for I/O");
	is(host.cpu_steal, 9 * tick_ms, "stolen time");
	is(host.memory_total, INT64CONST(8000) * 1024, "memory");
	is(host.memory_available, INT64CONST(5000) * 1024, "available memory");
	is(host.swap_used, INT64CONST(60) * 1024, "used swap");
	is(host.pressure_cpu_some, 111, "CPU pressure");
	is(host.pressure_memory_some, 222, "memory pressure of some");
	is(host.pressure_memory_full, 333, "memory pressure of all");
	is(host.pressure_io_full, HOST_NOT_KNOWN, "a figure without a file is not known");
	is(host.cpu_throttled, 777, "cgroup 2: throttled time");
	host_read(machine("v1"), &host);
	is(host.cpu_throttled, 5, "cgroup 1: throttled time, from ns");
	is(host.load_1, HOST_NOT_KNOWN, "a missing file is not known");
	host_read_process(machine("v2"), 42, &process);
	is(process.cpu_us, 70 * (SECOND / sysconf(_SC_CLK_TCK)),
	   "CPU time of a process with a strange name");
	is(process.memory, 10 * sysconf(_SC_PAGESIZE), "memory of that process");
	is(process.written, 4096, "bytes written by that process");
	host_read_process(machine("v2"), 43, &process);
	is(process.cpu_us, HOST_NOT_KNOWN, "figures of a process that has ended are not known");
}

/* ---- spawner.c ---- */

/* Functions of the server's library that spawner.c calls. */
#if !HAVE_DECL_STRLCPY
size_t
strlcpy(char *to, const char *from, size_t size)
{
	return snprintf(to, size, "%s", from);
}
#endif

void
get_parent_directory(char *path)
{
	*strrchr(path, '/') = '\0';
}

void
join_path_components(char *path, const char *head, const char *tail)
{
	strcat(strcat(path, "/"), tail);
}

/* Runs a shell command as the program is started, and reads its output. */
static void
run_shell(char *command, char *out, size_t size)
{
	char	   *argv[] = {"sh", "-c", command, NULL};
	int			ends[2];
	Spawned		spawned = {.control = -1};
	ssize_t		got;
	size_t		length = 0;

	out[0] = '\0';
	if (!spawn_pipe(ends) ||
		spawn_program(&spawned, "/bin/sh", argv, -1, ends[PIPE_WRITE],
					  ends[PIPE_WRITE], true) != NULL)
		return;
	spawn_close(&ends[PIPE_WRITE]);
	while ((got = read(ends[PIPE_READ], out + length, size - length - 1)) > 0)
		length += got;
	out[length] = '\0';
	spawn_close(&ends[PIPE_READ]);
	spawn_let_go(&spawned);
	while (!spawn_reap(&spawned))
		usleep(1000);
}

static void
a_program_gets_three_descriptors_and_two_variables(void)
{
	char		out[1000];

	/* like a socket or file of the server that is not marked close-on-exec */
	dup2(open("/dev/null", O_RDONLY), 77);
	setenv("TZDIR", "/zones", 1);
	setenv("SECRET", "s3cret", 1);
	run_shell("for fd in 0 1 2 77; do [ -e /proc/$$/fd/$fd ] && echo $fd; done",
			  out, sizeof(out));
	is(strcmp(out, "0\n1\n2\n"), 0, "a program gets three descriptors");
	run_shell("echo $LC_ALL $TZDIR $SECRET", out, sizeof(out));
	is(strcmp(out, "C /zones\n"), 0, "a program gets two variables");
	run_shell("kill -0 -$$ && echo leads", out, sizeof(out));
	is(strcmp(out, "leads\n"), 0, "a program gets a process group");
	close(77);
}

int
main(int argc, char **argv)
{
	directory = argc > 1 ? argv[1] : ".";
	ticks_are_taken_once_a_slot();
	missed_slots_leave_holes();
	steps_of_the_clock_are_seen();
	another_interval_goes_on_counting();
	a_budget_doubles_and_halves();
	quotas_of_cgroups_are_found();
	the_host_is_read();
	a_program_gets_three_descriptors_and_two_variables();
	return 0;
}
