/*
 * encoding.h
 *	  Text of any encoding in a database of any other.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ENCODING_H
#define TACHO_ENCODING_H

/*
 * `length` bytes of `encoding` in the encoding of the database, null-terminated,
 * in the current context. What the database's encoding does not have, and what
 * is not valid, becomes `?`: the bytes are never a reason for an error. Bytes of
 * SQL_ASCII stay where they are valid in the database; a database in SQL_ASCII
 * gets all bytes as they are. Looks into catalogs, so only in a transaction.
 */
extern char *encoding_to_server(const char *bytes, int length, int encoding);

/* Whether all bytes mean the same in every encoding. */
extern bool encoding_is_ascii(const char *bytes, int length);

#endif							/* TACHO_ENCODING_H */
