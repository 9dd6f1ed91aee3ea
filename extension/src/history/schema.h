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

/* Value of a label of an enumeration, 0 when there is none. */
extern int	schema_label(const char *enumeration, const char *label);

/* What a column is to readers. */
extern ModelRole schema_role(ModelTable table, int column);

/*
 * Compares the constants of model.h with the catalog and raises an error when
 * one is wrong.
 */
extern void schema_check(void);

#endif							/* TACHO_SCHEMA_H */
