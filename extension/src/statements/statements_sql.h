/*
 * statements_sql.h
 *	  Functions that the SQL functions over statements share.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_SQL_H
#define TACHO_STATEMENTS_SQL_H

#include "statements/statements.h"

/* True if the current role may see query ids and texts of role `user_id`. */
extern bool statements_may_see(Oid user_id);

/* The text in the encoding of the database; null if there is none. */
extern Datum statements_text_datum(const StatementCopy *copy, bool *isnull);

#endif							/* TACHO_STATEMENTS_SQL_H */
