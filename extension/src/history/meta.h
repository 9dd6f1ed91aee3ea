/*
 * meta.h
 *	  What the writer is told about the server and about its settings.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_META_H
#define TACHO_META_H

#include "history/frame.h"

/*
 * Adds schema, labels, the server's identity and the writer's settings to a
 * hello frame. `started_by` as docs/format.md lists it.
 */
extern void meta_put_hello(Frame *frame, const char *started_by);

/*
 * Adds what may change while the server runs: timeline, recovery, and the
 * settings that the writer obeys.
 */
extern void meta_put_settings(Frame *frame);

/*
 * Who the server is, readable: version, primary or standby, timeline, system
 * identifier, host.
 */
extern void meta_describe(char *text, Size size);

/*
 * CPUs this server may use by its affinity and the quota of its cgroup, in
 * hundredths, 0 = not known; read again once a minute.
 */
extern int	meta_vcpus_x100(void);

#endif							/* TACHO_META_H */
