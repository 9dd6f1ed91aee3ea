/*
 * areas.c
 *	  Looks for areas of shared memory as prepared.c does. For
 *	  154_areas_found.pl, which builds it; not part of the extension.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "sampler/prepared.c"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(area_found);

/* True if an area with this name and this size exists. */
Datum
area_found(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(find_area(text_to_cstring(PG_GETARG_TEXT_PP(0)),
							 PG_GETARG_INT64(1)) != NULL);
}
