/*
 * query_text.h
 *	  Texts of queries on their way from backends to the sampler.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_QUERY_TEXT_H
#define TACHO_QUERY_TEXT_H

/* longer texts are cut */
#define QUERY_TEXT_LIMIT	8192

typedef struct QueryText
{
	int64		query_id;
	Oid			database;
	Oid			user;
	int			encoding;
	int			length;			/* of `bytes` */
	int			whole_length;	/* of the whole text if it was cut, else 0 */
	const char *bytes;			/* not null-terminated */
} QueryText;

/* Installs the hook that collects texts. */
extern void query_text_init(void);

/*
 * Sampler: takes all texts out of the ring and calls `take` for each. Does
 * not wait for backends.
 */
extern void query_text_drain(void (*take) (const QueryText *text));

/*
 * Sampler: says whether backends shall put texts into the ring. `again`: they
 * also put those that were taken before.
 */
extern void query_text_want(bool wanted, bool again);

/*
 * Number of texts lost so far: the ring was full or busy, or the text could
 * not be made, or nothing of it could be kept. query_text_drop() counts one
 * more.
 */
extern int64 query_text_dropped(void);
extern void query_text_drop(void);

/* Number of the account of a role in a database, below TEXT_ACCOUNTS. */
extern int	query_text_account(Oid database, Oid user);

/*
 * Sampler: the role's share of today is used up, so its backends need not
 * try.
 */
extern void query_text_share_used(Oid database, Oid user);

/* Key of a text: a hash of its bytes, never 0. */
extern uint64 query_text_key(const char *bytes, int length);

#endif							/* TACHO_QUERY_TEXT_H */
