/*
 * library.c
 *	  Tells whether the file of the library is still the one that the server
 *	  loaded.
 *
 * Callers: the postmaster stores the identity of the file in shared memory
 * (shmem.c), tacho.status() compares. No file is opened. Locking: none, the
 * stored identity never changes.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <dlfcn.h>

#include "core/library.h"
#include "core/shmem.h"

LibraryFile
library_file(void)
{
	LibraryFile file = {0};
	struct stat status;
	Dl_info		info;

	if (dladdr((void *) library_file, &info) != 0 &&
		stat(info.dli_fname, &status) == 0)
	{
		file.device = status.st_dev;
		file.inode = status.st_ino;
		file.changed = status.st_mtime;
	}
	return file;
}

bool
library_was_replaced(void)
{
	const LibraryFile *loaded = &tacho_shared->library;
	LibraryFile now = library_file();

	return loaded->changed != 0 &&
		(now.device != loaded->device || now.inode != loaded->inode ||
		 now.changed != loaded->changed);
}
