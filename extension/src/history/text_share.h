/*
 * text_share.h
 *	  Limits the bytes of texts that each role may record in a day.
 *
 * A role in a database may record as many bytes of texts as tacho.text_limit
 * then leaves for all others. A role alone gets half of the limit, the next
 * one half of the rest, so there is always room for others. One text may take
 * a 256th of the role's remaining bytes, or 256 bytes if that is more. So long
 * texts are cut first, and left out later. A text that another role had
 * recorded in the same database is a repeat. All repeats together take at most
 * a quarter of the limit.
 *
 * Trees of plans have a limit of their own. It is as high as the limit of texts.
 * Trees with counted rows have another one. A tree is recorded whole or left out.
 *
 * The shares begin again when the sampler starts, which only a superuser can
 * cause. A new sampler collects all texts again, because the frames of the
 * old one may be lost.
 *
 * The sampler only. Memory: static, and a set of roles.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TEXT_SHARE_H
#define TACHO_TEXT_SHARE_H

#include "core/shmem.h"

/* Must be called first. Allocates in the current memory context. */
extern void text_share_init(void);

/* Begins a new day: all shares are unused. */
extern void text_share_day(void);

/*
 * text_share_frame(): a new frame begins. text_share_lost(): the open frame
 * was lost, so its bytes are given back.
 */
extern void text_share_frame(void);
extern void text_share_lost(void);

/* True if the open frame has texts. */
extern bool text_share_in_frame(void);

/*
 * Takes room for a text of `length` bytes. Returns the number of bytes to
 * record, 0 = none. `query` identifies the text in its database; a text
 * recorded before for another role is a repeat. Sets *first if a text of this
 * role in this database is cut or left out for the first time today.
 */
extern int	text_share_take(TextKind kind, Oid database, Oid user, uint64 query,
							int length, bool *first);

#endif							/* TACHO_TEXT_SHARE_H */
