/*
 * encoding.h
 *	  Text of any encoding in a database of any other.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ENCODING_H
#define TACHO_ENCODING_H

/*
 * Converts `length` bytes of `encoding` to the encoding of the database. The
 * result is null-terminated, in the current memory context. A character that
 * the database's encoding lacks, or an invalid byte, becomes `?`: no bytes
 * raise an error. Bytes of SQL_ASCII stay as they are if they are valid in
 * the database; a database in SQL_ASCII gets all bytes unchanged. Must run in
 * a transaction, because it reads catalogs.
 */
extern char *encoding_to_server(const char *bytes, int length, int encoding);

/* True if all bytes mean the same in every encoding. */
extern bool encoding_is_ascii(const char *bytes, int length);

#endif							/* TACHO_ENCODING_H */
