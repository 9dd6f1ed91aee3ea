/*
 * host.c
 *	  Figures of the machine and the cgroup, from the operating system.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/host.h"

#define FILE_BYTES		8192	/* longest part of a file that is read */
#define PATH_BYTES		1024

/* Reads the beginning of a file as a string; false if it cannot be read. */
static bool
read_file(const char *root, const char *path, char *buffer)
{
	char		whole[PATH_BYTES];
	int			file;
	ssize_t		got;

	if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= (int) sizeof(whole))
		return false;
	file = open(whole, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	got = read(file, buffer, FILE_BYTES - 1);
	close(file);
	if (got < 0)
		return false;
	buffer[got] = '\0';
	return true;
}

/* The text after `word`, which must begin a line; NULL if no line has it. */
static const char *
line_of(const char *text, const char *word)
{
	Size		length = strlen(word);

	while (text != NULL && *text != '\0')
	{
		const char *end = strchr(text, '\n');

		if (strncmp(text, word, length) == 0)
			return text + length;
		text = end ? end + 1 : NULL;
	}
	return NULL;
}

static int64
number_of(const char *text, const char *word)
{
	const char *found = line_of(text, word);

	return found ? strtoll(found, NULL, 10) : HOST_NOT_KNOWN;
}

/*
 * Reads the load averages and the number of runnable tasks, the one before
 * the slash: "0.50 0.40 0.30 2/345 6789".
 */
static void
read_load(const char *root, Host *host)
{
	char		text[FILE_BYTES];
	double		load[3];
	long long	runnable;

	if (!read_file(root, "/proc/loadavg", text) ||
		sscanf(text, "%lf %lf %lf %lld/", &load[0], &load[1], &load[2],
			   &runnable) != 4)
		return;
	host->tasks_runnable = runnable;
	host->load_1 = (int64) (load[0] * 100 + 0.5);
	host->load_5 = (int64) (load[1] * 100 + 0.5);
	host->load_15 = (int64) (load[2] * 100 + 0.5);
}

/*
 * Reads the line "cpu", whose fields are in clock ticks of the kernel: user
 * nice system idle iowait irq softirq steal.
 */
static void
read_cpu(const char *root, Host *host)
{
	char		text[FILE_BYTES];
	const char *all;
	long long	t[8];
	int64		tick_ms = 1000 / sysconf(_SC_CLK_TCK);

	if (!read_file(root, "/proc/stat", text) ||
		(all = line_of(text, "cpu ")) == NULL ||
		sscanf(all, "%lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1],
			   &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
		return;
	host->cpu_user = (t[0] + t[1]) * tick_ms;
	host->cpu_system = (t[2] + t[5] + t[6]) * tick_ms;
	host->cpu_idle = t[3] * tick_ms;
	host->cpu_iowait = t[4] * tick_ms;
	host->cpu_steal = t[7] * tick_ms;
}

static void
read_memory(const char *root, Host *host)
{
	char		text[FILE_BYTES];
	int64		swap;
	int64		swap_free;

	if (!read_file(root, "/proc/meminfo", text))
		return;
	host->memory_total = number_of(text, "MemTotal:");
	host->memory_available = number_of(text, "MemAvailable:");
	swap = number_of(text, "SwapTotal:");
	swap_free = number_of(text, "SwapFree:");
	if (host->memory_total >= 0)
		host->memory_total *= 1024;
	if (host->memory_available >= 0)
		host->memory_available *= 1024;
	if (swap >= 0 && swap_free >= 0)
		host->swap_used = (swap - swap_free) * 1024;
}

/*
 * The "total" in the line that begins with `word`, in us. Example of a line:
 * "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345"; another one begins
 * with "full".
 */
static int64
stall_of(const char *text, const char *word)
{
	const char *line = line_of(text, word);
	const char *total = line ? strstr(line, "total=") : NULL;

	return total ? strtoll(total + strlen("total="), NULL, 10) : HOST_NOT_KNOWN;
}

static void
read_pressure(const char *root, const char *path, int64 *some, int64 *full)
{
	char		text[FILE_BYTES];

	if (!read_file(root, path, text))
		return;
	*some = stall_of(text, "some ");
	if (full)
		*full = stall_of(text, "full ");
}

/* ---- cgroup ---- */

/*
 * Finds the cgroup of this process in /proc/self/cgroup. Its path ends the
 * line of hierarchy "0::" (version 2) or of the controller "cpu" (version 1).
 */
static bool
find_group(const char *groups, bool version_2, char *group)
{
	for (const char *line = groups; line != NULL && *line != '\0';)
	{
		const char *end = strchr(line, '\n');
		const char *names = strchr(line, ':');
		const char *path = names ? strchr(names + 1, ':') : NULL;
		int			length = end ? end - line : (int) strlen(line);
		char		list[PATH_BYTES];

		if (path == NULL || length >= PATH_BYTES)
			return false;
		snprintf(list, sizeof(list), ",%.*s,", (int) (path - names - 1),
				 names + 1);
		if (version_2 ? strcmp(list, ",,") == 0 : strstr(list, ",cpu,") != NULL)
		{
			snprintf(group, PATH_BYTES, "%.*s",
					 (int) (length - (path + 1 - line)), path + 1);
			return true;
		}
		line = end ? end + 1 : NULL;
	}
	return false;
}

/* The CPU quota of one cgroup, in hundredths of a CPU. */
static int64
quota_of(const char *root, const char *mount, const char *group, bool version_2)
{
	char		path[2 * PATH_BYTES];
	char		text[FILE_BYTES];
	long long	quota;
	long long	period;

	snprintf(path, sizeof(path), "%s%s/%s", mount, group,
			 version_2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!read_file(root, path, text))
		return HOST_NOT_KNOWN;
	if (version_2 && sscanf(text, "%lld %lld", &quota, &period) != 2)
		return HOST_NOT_KNOWN;	/* "max 100000": no quota */
	if (!version_2)
	{
		quota = strtoll(text, NULL, 10);
		snprintf(path, sizeof(path), "%s%s/cpu.cfs_period_us", mount, group);
		if (!read_file(root, path, text))
			return HOST_NOT_KNOWN;
		period = strtoll(text, NULL, 10);
	}
	return quota > 0 && period > 0 ? Max(1, quota * 100 / period) : HOST_NOT_KNOWN;
}

/*
 * The least quota of a cgroup and the groups above it, up to the mount's
 * root.
 */
static int64
least_quota(const char *root, const char *mount, char *group, bool version_2)
{
	int64		least = HOST_NOT_KNOWN;

	for (;;)
	{
		char	   *slash = strrchr(group, '/');
		int64		quota = quota_of(root, mount, group, version_2);

		if (quota > 0 && (least < 0 || quota < least))
			least = quota;
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

static bool
own_group(const char *root, bool version_2, char *group)
{
	char		groups[FILE_BYTES];

	return read_file(root, "/proc/self/cgroup", groups) &&
		find_group(groups, version_2, group);
}

int64
host_cpu_quota_x100(const char *root)
{
	char		group[PATH_BYTES];
	int64		quota = HOST_NOT_KNOWN;

	if (own_group(root, true, group))
		quota = least_quota(root, "/sys/fs/cgroup", group, true);
	if (quota < 0 && own_group(root, false, group))
		quota = least_quota(root, "/sys/fs/cgroup/cpu", group, false);
	return quota;
}

static int64
throttled(const char *root)
{
	char		group[PATH_BYTES];
	char		path[2 * PATH_BYTES];
	char		text[FILE_BYTES];

	if (own_group(root, true, group))
	{
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.stat", group);
		if (read_file(root, path, text) && line_of(text, "throttled_usec "))
			return number_of(text, "throttled_usec ");
	}
	if (!own_group(root, false, group))
		return HOST_NOT_KNOWN;
	snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.stat", group);
	if (!read_file(root, path, text) || !line_of(text, "throttled_time "))
		return HOST_NOT_KNOWN;
	return number_of(text, "throttled_time ") / 1000;
}

void
host_read(const char *root, Host *host)
{
	int64	   *values = (int64 *) host;

	for (Size i = 0; i < sizeof(*host) / sizeof(int64); i++)
		values[i] = HOST_NOT_KNOWN;
	read_load(root, host);
	read_cpu(root, host);
	read_memory(root, host);
	read_pressure(root, "/proc/pressure/cpu", &host->pressure_cpu_some, NULL);
	read_pressure(root, "/proc/pressure/memory", &host->pressure_memory_some,
				  &host->pressure_memory_full);
	read_pressure(root, "/proc/pressure/io", &host->pressure_io_some,
				  &host->pressure_io_full);
	host->cpu_throttled = throttled(root);
}

/*
 * CPU time in us from the text of /proc/PID/stat. utime and stime are fields
 * 12 and 13 after the command name. The name may contain anything, so the last
 * ")" ends it.
 */
static int64
process_cpu_us(const char *stat)
{
	const char *rest = strrchr(stat, ')');
	unsigned long long user;
	unsigned long long kernel;

	if (rest == NULL ||
		sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu",
			   &user, &kernel) != 2)
		return HOST_NOT_KNOWN;
	return (int64) (user + kernel) * (1000000 / sysconf(_SC_CLK_TCK));
}

void
host_read_process(const char *root, int pid, HostProcess *process)
{
	char		path[PATH_BYTES];
	char		text[FILE_BYTES];
	long long	resident;

	process->cpu_us = process->memory = process->written = HOST_NOT_KNOWN;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(root, path, text))
		process->cpu_us = process_cpu_us(text);
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (read_file(root, path, text) &&
		sscanf(text, "%*d %lld", &resident) == 1)
		process->memory = resident * sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/proc/%d/io", pid);
	if (read_file(root, path, text))
		process->written = number_of(text, "write_bytes:");
}
