/*
 * meta.c
 *	  Tells the writer about the server, and the settings that the writer
 *	  obeys.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "port.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "core/clocks.h"
#include "core/host.h"
#include "core/settings.h"
#include "history/meta.h"
#include "history/schema.h"

#define VCPUS_FOR_US	60000000
/* file systems are measured each sixth time, but at least once a minute */
#define DISK_READINGS	6
#define DISK_LONGEST_MS	60000

static void
put_text(Section *section, const char *key, const char *value)
{
	(void) section_add(section);
	section_set_bytes(section, COL_meta_key, key, strlen(key));
	section_set_bytes(section, COL_meta_value, value, strlen(value));
}

static void
put_number(Section *section, const char *key, int64 value)
{
	char		text[32];

	snprintf(text, sizeof(text), INT64_FORMAT, value);
	put_text(section, key, text);
}

static TimeLineID
current_timeline(void)
{
	TimeLineID	timeline = 0;

	if (!RecoveryInProgress())
		return GetWALInsertionTimeLine();
	(void) GetXLogReplayRecPtr(&timeline);
	return timeline;
}

/* Only the server's user may read files outside the data directory. */
static int
file_mode(void)
{
	if (path_is_prefix_of_path(DataDir, tacho_directory_path()))
		return pg_file_create_mode;
	return S_IRUSR | S_IWUSR;
}

static int64
disk_interval(void)
{
	int64		sixth = (int64) tacho_server_interval * DISK_READINGS;

	return Max(tacho_server_interval, Min(sixth, DISK_LONGEST_MS));
}

static void
put_settings(Section *section)
{
	char		mode[8];

	snprintf(mode, sizeof(mode), "%04o", file_mode());
	put_number(section, "timeline", current_timeline());
	put_number(section, "in_recovery", RecoveryInProgress());
	put_number(section, "flush_interval_ms", tacho_flush_interval);
	put_number(section, "retention_age_s", tacho_retention_age);
	put_number(section, "retention_size_mb", tacho_retention_size);
	put_number(section, "retention_unshipped_mb", tacho_retention_unshipped);
	put_number(section, "min_free_space_mb", tacho_min_free_space);
	put_number(section, "text_limit_kb", tacho_text_limit);
	put_number(section, "disk_interval_ms", disk_interval());
	put_number(section, "statements_full_age_s", tacho_statements_full_age);
	put_number(section, "statements_ten_minutes_age_s",
			   tacho_statements_ten_minutes_age);
	put_text(section, "file_mode", mode);
}

void
meta_put_settings(Frame *frame)
{
	put_settings(frame_section(frame, TABLE_meta));
}

static void
host_name(char *name, Size size)
{
	name[0] = '\0';
	(void) gethostname(name, size - 1);
	name[size - 1] = '\0';
}

void
meta_describe(char *text, Size size)
{
	char		host[256];

	host_name(host, sizeof(host));
	snprintf(text, size, "PostgreSQL %s, %s, timeline %u, system " UINT64_FORMAT ", host %s",
			 GetConfigOption("server_version", false, false),
			 RecoveryInProgress() ? "standby" : "primary",
			 current_timeline(), GetSystemIdentifier(), host);
}

void
meta_put_hello(Frame *frame, const char *started_by)
{
	Section    *section = frame_section(frame, TABLE_meta);
	char		text[256];

	schema_put(frame);
	snprintf(text, sizeof(text), UINT64_FORMAT, GetSystemIdentifier());
	put_text(section, "system_identifier", text);
	put_number(section, "postmaster_start", PgStartTime + TACHO_EPOCH_OFFSET_US);
	put_number(section, "server_version_num",
			   atoi(GetConfigOption("server_version_num", false, false)));
	host_name(text, sizeof(text));
	put_text(section, "host", text);
	put_text(section, "data_directory", DataDir);
	put_text(section, "started_by", started_by);
	put_settings(section);
}

int
meta_vcpus_x100(void)
{
	static int	vcpus = 0;
	static int64 read_us = 0;
	int64		now = clock_boot_us();
	int64		quota;

	if (read_us == 0 || now - read_us > VCPUS_FOR_US)
	{
#ifdef CPU_COUNT
		cpu_set_t	set;

		vcpus = sched_getaffinity(0, sizeof(set), &set) == 0 ?
			CPU_COUNT(&set) * 100 : 0;
#endif
		quota = host_cpu_quota_x100("");
		if (quota > 0 && (vcpus == 0 || quota < vcpus))
			vcpus = (int) quota;
		read_us = now;
	}
	return vcpus;
}
