/*
 * release_markers.h
 *	  Markers of new values of the tag "release".
 *
 * The sampler remembers the newest 256 releases of all applications. An
 * application is the tag "application" in a database. Its first release has
 * no marker, because it may have run for long. A minute has at most 16
 * markers, and a role at most half of those that are left.
 *
 * The sampler only. Memory: static.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RELEASE_MARKERS_H
#define TACHO_RELEASE_MARKERS_H

#include "history/frame.h"
#include "sampler/session_scan.h"

/*
 * A row with these tags is sampled. Adds a marker to the open frame if they
 * have a new release.
 */
extern void release_markers_see(const SessionRow *row, const char *tags, int length,
								UnixMs now);

#endif							/* TACHO_RELEASE_MARKERS_H */
