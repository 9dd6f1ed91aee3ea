/*
 * schema.h
 *	  Describes the data model to the writer: the catalog as rows of the hello
 *	  frame.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SCHEMA_H
#define TACHO_SCHEMA_H

#include "history/frame.h"

/* Adds the sections "schema" and "label" to a hello frame. */
extern void schema_put(Frame *frame);

/* The value of a label in an enumeration, 0 if there is none. */
extern int	schema_label(const char *enumeration, const char *label);

/* How readers use a column. */
extern ModelRole schema_role(ModelTable table, int column);

/*
 * Compares the constants of model.h with the catalog. Raises an error if one
 * differs.
 */
extern void schema_check(void);

#endif							/* TACHO_SCHEMA_H */
