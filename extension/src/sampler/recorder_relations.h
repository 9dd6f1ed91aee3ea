/*
 * recorder_relations.h
 *	  Records the names of relations that trees of plans and the catalog
 *	  worker have.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_RELATIONS_H
#define TACHO_RECORDER_RELATIONS_H

#include "core/tacho.h"
#include "history/frame.h"
#include "plans/tree_relations.h"
#include "statements/text_ring.h"

/* Forgets what was recorded: a new day begins, or a frame was lost. */
extern void recorder_relations_forget(void);

/* A relation with its name, in an encoding of PostgreSQL. */
typedef struct NamedRelation
{
	Oid			database;		/* 0 = shared by all databases */
	Oid			oid;
	TreeString	schema;			/* empty if it is not known */
	TreeString	name;
	int			encoding;
} NamedRelation;

/* Hash of schema and name. */
extern uint32 recorder_name_hash(const NamedRelation *relation);

/* Adds a name to the frame, unless the history has it. */
extern void recorder_put_relation(Frame *frame, const NamedRelation *relation, UnixMs now);

/* Adds the names in a tree to the frame, unless the history has them. */
extern void recorder_put_relations(Frame *frame, const QueryText *tree, UnixMs now);

#endif							/* TACHO_RECORDER_RELATIONS_H */
