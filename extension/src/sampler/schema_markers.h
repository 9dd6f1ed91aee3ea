/*
 * schema_markers.h
 *	  Markers for changes of the schema.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SCHEMA_MARKERS_H
#define TACHO_SCHEMA_MARKERS_H

/*
 * Puts a marker for each change that has ended since the last turn: command
 * "DROP INDEX", object "orders_customer", role "deploy", and so on in
 * columns. A minute has at most 240 of these markers, which roles share
 * (history/share.h). One more marker has the number of changes beyond them.
 */
extern void schema_markers_turn(int64 wall_us);

#endif							/* TACHO_SCHEMA_MARKERS_H */
