/*
 * hot.h
 *	  What every statement looks at lies together, as what it runs through does
 *	  (pg_attribute_hot of the server).
 *
 * A session that has just got its CPU finds caches and TLB of others. What a
 * statement costs then is the number of lines and pages that it touches, more
 * than that of its instructions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HOT_H
#define TACHO_HOT_H

/* A variable that every statement reads. */
#ifdef __ELF__
#define HOT_DATA __attribute__((section(".data.hot")))
#else
#define HOT_DATA
#endif

#endif							/* TACHO_HOT_H */
