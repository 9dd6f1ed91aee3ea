/*
 * library.h
 *	  Tells whether the file of the library is still the one that the server
 *	  loaded.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_LIBRARY_H
#define TACHO_LIBRARY_H

#include <sys/stat.h>

/* The identity of a file in the file system. */
typedef struct LibraryFile
{
	dev_t		device;
	ino_t		inode;
	time_t		changed;		/* 0: unknown */
} LibraryFile;

/*
 * The identity of this library's file now; unknown if the file does not
 * exist.
 */
extern LibraryFile library_file(void);

/*
 * True if the file differs from the one that the postmaster has loaded: an
 * upgrade replaced it, and the server runs the old one until its restart.
 */
extern bool library_was_replaced(void);

#endif							/* TACHO_LIBRARY_H */
