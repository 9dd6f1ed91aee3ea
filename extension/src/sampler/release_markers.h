/*
 * release_markers.h
 *	  Markers of new values of the tag "release".
 *
 * The sampler remembers the newest 256 releases of all applications. An
 * application is the tag "application" in a database. Its first release has
 * no marker, because it may have run for long. A minute has at most 16
 * markers, and a role at most half of those that are left.
 *
 * A release that has lost its place to a newer one goes into a ring of 4,096.
 * If it comes back while the ring has it, it has no marker. So more than 256
 * releases at a time give no markers again and again. The ring has hashes of
 * 64 bits, so a new release is not taken for an old one.
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
