/*
 * recorder_relations.c
 *	  Records the names of relations that trees of plans and the catalog
 *	  worker have.
 *
 * Readers show them where the history has OIDs, such as in a lock: example
 * "relation 16384/16394" becomes "relation public.orders". A name is recorded
 * once a day, and when it has changed.
 *
 * A table remembers what was recorded: each relation has one place, which it
 * may share. A relation that has lost its place is recorded again with its
 * next tree.
 *
 * The sampler only. Memory: static.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "history/dictionary.h"
#include "sampler/recorder_relations.h"
#include "sampler/relation_stats.h"

#define PLACES	8192			/* power of two */

typedef struct RecordedName
{
	Oid			database;
	Oid			relation;
	uint32		hash;			/* of schema and name */
} RecordedName;

static RecordedName recorded[PLACES];

void
recorder_relations_forget(void)
{
	memset(recorded, 0, sizeof(recorded));
}

static uint32
hash_of(TreeString string)
{
	return hash_bytes((const unsigned char *) string.bytes, string.length);
}

uint32
recorder_name_hash(const NamedRelation *relation)
{
	return hash_combine(hash_of(relation->schema), hash_of(relation->name));
}

/* Remembers a name; false if it was recorded before. */
static bool
remember(const NamedRelation *relation)
{
	RecordedName name = {
		.database = relation->database,
		.relation = relation->oid,
		.hash = recorder_name_hash(relation),
	};
	uint32		hash = relation_hash(RELATION_KEY(relation->database, relation->oid));
	RecordedName *place = &recorded[hash & (PLACES - 1)];

	if (memcmp(place, &name, sizeof(name)) == 0)
		return false;
	*place = name;
	return true;
}

static uint64
name_id(TreeString string, int encoding)
{
	return string.length == 0 ? 0 :
		dictionary_name(string.bytes, string.length, encoding);
}

void
recorder_put_relation(Frame *frame, const NamedRelation *relation, UnixMs now)
{
	uint64		schema;
	uint64		name;
	Section    *section;
	int			row;

	if (!remember(relation))
		return;
	schema = name_id(relation->schema, relation->encoding);
	name = name_id(relation->name, relation->encoding);
	section = frame_section(frame, TABLE_relation);
	row = section_add(section);
	section_set(section, row, COL_relation_time, frame_time(frame, now));
	section_set(section, row, COL_relation_database_oid, relation->database);
	section_set(section, row, COL_relation_oid, relation->oid);
	section_set(section, row, COL_relation_schema, schema);
	section_set(section, row, COL_relation_name, name);
}

void
recorder_put_relations(Frame *frame, const QueryText *tree, UnixMs now)
{
	TreeRelations relations = tree_relations(tree->bytes, tree->length);
	TreeRelation relation;

	while (tree_relations_next(&relations, &relation))
	{
		NamedRelation named = {
			.database = tree->database,
			.oid = relation.oid,
			.schema = relation.schema,
			.name = relation.name,
			.encoding = tree->encoding,
		};

		recorder_put_relation(frame, &named, now);
	}
}
