/*
 * text_share.h
 *	  Who may record how many bytes of texts a day.
 *
 * A role in a database may have recorded as many bytes as are left of
 * tacho.text_limit for everybody: alone it gets half of the limit, the next one
 * half of the rest. So there is always room for others. A text may be a 256th
 * of what is left for its role, or 256 bytes: long texts are cut first, then
 * left out.
 * Texts that another role had recorded in the same database take a quarter of
 * the limit together at most.
 *
 * The shares begin again with the sampler, which only a superuser can end: a new
 * sampler asks for all texts once more, since the frames of the one before may be
 * lost.
 *
 * The sampler only. Memory: static, and a set of roles.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TEXT_SHARE_H
#define TACHO_TEXT_SHARE_H

/* Before anything else. Allocates in the current memory context. */
extern void text_share_init(void);

/* A new day: nothing is used. */
extern void text_share_day(void);

/* A new frame begins; the last one was lost, and what it held is not used. */
extern void text_share_frame(void);
extern void text_share_lost(void);

/* Whether the open frame holds texts. */
extern bool text_share_in_frame(void);

/*
 * Takes room for a text of `length` bytes and returns how many of them may be
 * recorded, 0 = none. `query` tells texts of a database apart; what was
 * recorded for another role before is a repeat. *first: it is the first time
 * today that this role in this database gets less than it asked for.
 */
extern int	text_share_take(Oid database, Oid user, uint64 query, int length,
							bool *first);

#endif							/* TACHO_TEXT_SHARE_H */
