/*
 * tree_relations.h
 *	  The relations in the tree of a plan, with their names.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TREE_RELATIONS_H
#define TACHO_TREE_RELATIONS_H

/* Bytes of a tree, not null-terminated; no bytes if the node lacks the text. */
typedef struct TreeString
{
	const char *bytes;
	int			length;
} TreeString;

typedef struct TreeRelation
{
	Oid			oid;
	TreeString	schema;			/* empty if the name of the schema is not known */
	TreeString	name;
	TreeString	analyzed;
} TreeRelation;

/* Where tree_relations_next() continues. */
typedef struct TreeRelations
{
	const char *at;
	const char *end;
} TreeRelations;

/* Begins at the first node of a tree. */
extern TreeRelations tree_relations(const char *bytes, int length);

/*
 * Finds the next node with a relation whose OID is known. Returns false at the
 * end of the tree, and where its bytes are damaged.
 */
extern bool tree_relations_next(TreeRelations *tree, TreeRelation *relation);

#endif							/* TACHO_TREE_RELATIONS_H */
