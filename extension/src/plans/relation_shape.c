/*
 * relation_shape.c
 *	  Relations and indexes as numbers that plan ids are made of.
 *
 * Each process keeps the numbers it has made, because opening an index costs
 * more than the rest of a plan of one index scan: 1,000 partitions by index
 * took 364 us. A number is forgotten when the server invalidates its
 * relation.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "core/compat.h"
#include "plans/plan_names.h"
#include "plans/relation_shape.h"

#define KEPT 1024				/* power of two; 16 kB once used */

typedef struct KeptShape
{
	Oid			relation;		/* InvalidOid = empty */
	uint64		shape;
} KeptShape;

static KeptShape kept[KEPT];

static inline KeptShape *
place_of(Oid relation)
{
	return &kept[relation & (KEPT - 1)];
}

static void
forget_shape(Datum argument, Oid relation)
{
	if (!OidIsValid(relation))
		memset(kept, 0, sizeof(kept));
	else if (place_of(relation)->relation == relation)
		place_of(relation)->relation = InvalidOid;
}

/*
 * A schema may have a new name. Making the numbers again also looks up the
 * names of schemas again.
 */
static void
forget_shapes(Datum argument, int cache, uint32 hash)
{
	memset(kept, 0, sizeof(kept));
}

/* The number of a relation: from `kept`, or made by make(). */
static uint64
shape_of(Oid id, uint64 (*make) (Relation))
{
	static bool registered = false;
	KeptShape  *place = place_of(id);
	Relation	relation;
	uint64		shape;

	if (place->relation == id)
		return place->shape;
	if (!registered)
	{
		CacheRegisterRelcacheCallback(forget_shape, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, forget_shapes, (Datum) 0);
		registered = true;
	}
	relation = RelationIdGetRelation(id);
	if (relation == NULL)
		return id;
	shape = make(relation);
	RelationClose(relation);
	*place = (KeptShape) {.relation = id, .shape = shape};
	return shape;
}

static uint64
make_relation_shape(Relation relation)
{
	if (relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return shape_mix_name('T', RelationGetRelationName(relation));
	schema_name_keep(RelationGetNamespace(relation));
	return RelationGetRelid(relation);
}

/* Mixes in the condition of a partial index, as the catalog stores it. */
static uint64
mix_condition(uint64 sum, Relation index)
{
	bool		isnull;
	Datum		condition = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
											Anum_pg_index_indpred, &isnull);

	if (isnull)
		return sum;
	return shape_mix_bytes(sum, DatumGetPointer(condition), VARSIZE_ANY(DatumGetPointer(condition)));
}

static uint64
make_index_shape(Relation index)
{
	uint64		sum = shape_mix(0, index->rd_rel->relam);

	sum = shape_mix(sum, index->rd_index->indisunique);
	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
		sum = shape_mix_name(sum, NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname));
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		sum = shape_mix(shape_mix(sum, index->rd_opfamily[i]), index->rd_indoption[i]);
	return mix_condition(sum, index);
}

uint64
relation_shape(Oid relation)
{
	return relation < FirstNormalObjectId ? relation : shape_of(relation, make_relation_shape);
}

uint64
index_shape(Oid index)
{
	return shape_of(index, make_index_shape);
}
