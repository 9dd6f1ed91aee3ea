/*
 * disks.c
 *	  The newest space of the file systems that the server uses.
 *
 * Locking: none. Memory: static, in the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "history/disks.h"

static Disk disks[DISKS_MOST];
static int	disk_count = 0;

/* The place of a name, a new one if there is room, else NULL. */
static Disk *
find_disk(const char *name)
{
	for (int i = 0; i < disk_count; i++)
	{
		if (strcmp(disks[i].name, name) == 0)
			return &disks[i];
	}
	if (disk_count == DISKS_MOST)
		return NULL;
	strlcpy(disks[disk_count].name, name, MAXPGPATH);
	return &disks[disk_count++];
}

void
disks_take(const char *line)
{
	long long	free_bytes;
	long long	size;
	int			name_at = 0;
	Disk	   *disk;

	if (sscanf(line, "%lld %lld %n", &free_bytes, &size, &name_at) != 2 ||
		name_at == 0 || free_bytes < 0 || size < free_bytes ||
		line[name_at] == '\0' || strlen(line + name_at) >= MAXPGPATH)
		return;
	disk = find_disk(line + name_at);
	if (disk == NULL)
		return;
	disk->free = free_bytes;
	disk->size = size;
}

const Disk *
disks_read(int *count)
{
	*count = disk_count;
	return disks;
}

void
disks_forget(void)
{
	disk_count = 0;
}
