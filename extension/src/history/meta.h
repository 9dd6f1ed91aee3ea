/*
 * meta.h
 *	  Tells the writer about the server, and the settings that the writer
 *	  obeys.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_META_H
#define TACHO_META_H

#include "history/frame.h"

/*
 * Adds schema, labels, the server's identity and the writer's settings to a
 * hello frame. docs/format.md lists the values of `started_by`.
 */
extern void meta_put_hello(Frame *frame, const char *started_by);

/*
 * Adds the values that may change while the server runs: timeline, recovery,
 * and the settings that the writer obeys.
 */
extern void meta_put_settings(Frame *frame);

/*
 * Describes the server in readable words: version, primary or standby,
 * timeline, system identifier, host.
 */
extern void meta_describe(char *text, Size size);

/*
 * CPUs that this server may use, in hundredths, by its affinity and the quota
 * of its cgroup; 0 = not known. Read again once a minute.
 */
extern int	meta_vcpus_x100(void);

#endif							/* TACHO_META_H */
