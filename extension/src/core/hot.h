/*
 * hot.h
 *	  Keeps the variables that every statement reads side by side, as
 *	  pg_attribute_hot of the server does with code.
 *
 * A session that has just got a CPU finds the caches and TLB full of other
 * data. The cost of a statement then depends on the number of cache lines and
 * pages it touches, more than on its instructions.
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
