/*
 * release_markers.h
 *	  Markers of new values of the tag "release".
 *
 * The sampler remembers the newest 256 releases of all applications. An
 * application is the tag "application" in a database. Its first release has
 * no marker, because it may have run for long. A minute has at most 16
 * markers, and a role at most half of those that are left.
 *
 * A release that has lost its place to a newer one leaves a bit in a table of
 * 65,536 bits. If it comes back, it has no marker. So more than 256 releases
 * at a time give no markers again and again. After many thousand releases a
 * new one may have the bit of an old one, and has no marker.
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
