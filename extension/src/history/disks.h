/*
 * disks.h
 *	  The newest space of the file systems that the server uses.
 *
 * A file system that does not answer blocks whoever asks it. Therefore the
 * writer asks, in threads of their own. Its messages bring the measurements
 * here, where they wait for the next row.
 *
 * Nothing here waits or raises an error.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_DISKS_H
#define TACHO_DISKS_H

/* file systems that are kept, as many as the writer measures */
#define DISKS_MOST	64

typedef struct Disk
{
	int64		free;			/* bytes that the server can still use */
	int64		size;			/* bytes */
	char		name[MAXPGPATH];	/* such as "data directory" */
} Disk;

/*
 * Takes a measurement: free bytes, a blank, bytes of the file system, a blank,
 * its name. A line of another shape is ignored.
 */
extern void disks_take(const char *line);

/* The measurements since disks_forget(): the newest of each file system. */
extern const Disk *disks_read(int *count);

extern void disks_forget(void);

#endif							/* TACHO_DISKS_H */
