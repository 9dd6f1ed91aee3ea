/*
 * tree_relations.c
 *	  The relations in the tree of a plan, with their names.
 *
 * Reads the bytes that plan_tree.c has written. They come from another
 * process, so no length in them is trusted.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "plans/plan_tree.h"
#include "plans/tree_relations.h"

#define NODE_BYTES		5		/* level, kind, role, detail, flags */
#define NODE_NUMBERS	4		/* rows, width, both costs */

TreeRelations
tree_relations(const char *bytes, int length)
{
	return (TreeRelations) {
		.at = bytes + Min(length, PLAN_TREE_LEAST),
		.end = bytes + length,
	};
}

/* The next byte, 0 at the end. */
static inline uint8
next_byte(TreeRelations *tree)
{
	return tree->at < tree->end ? (uint8) *tree->at++ : 0;
}

static void
skip_numbers(TreeRelations *tree)
{
	for (int i = 0; i < NODE_NUMBERS; i++)
		while (next_byte(tree) & 0x80)
			;
}

static TreeString
next_string(TreeRelations *tree)
{
	int			length = next_byte(tree);
	TreeString	string = {tree->at, Min(length, tree->end - tree->at)};

	tree->at += string.length;
	return string;
}

/* Decimal digits; InvalidOid if they are no OID. */
static Oid
oid_of(TreeString digits)
{
	uint64		oid = 0;

	for (int i = 0; i < digits.length; i++)
	{
		if (digits.bytes[i] < '0' || digits.bytes[i] > '9' || oid > PG_UINT32_MAX)
			return InvalidOid;
		oid = oid * 10 + (digits.bytes[i] - '0');
	}
	return oid > PG_UINT32_MAX ? InvalidOid : (Oid) oid;
}

/* Reads a node, with InvalidOid if it has no relation. */
static void
next_node(TreeRelations *tree, TreeRelation *relation)
{
	uint8		kind;

	memset(relation, 0, sizeof(*relation));
	tree->at += Min(NODE_BYTES, tree->end - tree->at);
	skip_numbers(tree);
	while ((kind = next_byte(tree)) != 0)
	{
		TreeString	string = next_string(tree);

		if (kind == TEXT_RELATION)
			relation->name = string;
		else if (kind == TEXT_SCHEMA)
			relation->schema = string;
		else if (kind == TEXT_RELATION_OID)
			relation->oid = oid_of(string);
		else if (kind == TEXT_ANALYZED)
			relation->analyzed = string;
	}
}

bool
tree_relations_next(TreeRelations *tree, TreeRelation *relation)
{
	while (tree->at < tree->end)
	{
		next_node(tree, relation);
		if (OidIsValid(relation->oid) && relation->name.length > 0)
			return true;
	}
	return false;
}
