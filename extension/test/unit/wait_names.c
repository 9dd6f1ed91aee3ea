/*
 * wait_names.c
 *		Names of all wait events of PostgreSQL 15 and 16, which have no view of
 *		them: asks the server for the name of each number.
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(wait_names);

/* Classes that number their events from 0 on without a gap. */
static const uint32 classes[] = {
	PG_WAIT_ACTIVITY, PG_WAIT_CLIENT, PG_WAIT_IPC, PG_WAIT_TIMEOUT, PG_WAIT_IO
};

/* Appends "TYPE:EVENT"; false if the number has no name. */
static bool
append(StringInfo out, uint32 event)
{
	const char *name = pgstat_get_wait_event(event);

	if (strncmp(name, "unknown", 7) == 0 || name[0] == '<')
		return false;
	appendStringInfo(out, "%s%s:%s", out->len > 0 ? " " : "",
					 pgstat_get_wait_event_type(event), name);
	return true;
}

Datum
wait_names(PG_FUNCTION_ARGS)
{
	StringInfoData out;

	initStringInfo(&out);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
	{
		for (uint32 event = classes[i]; append(&out, event); event++)
			;
	}
	append(&out, PG_WAIT_BUFFER_PIN);
	append(&out, PG_WAIT_EXTENSION);
	for (uint32 type = 0; type <= LOCKTAG_LAST_TYPE; type++)
		append(&out, PG_WAIT_LOCK | type);
	for (uint32 tranche = 0; tranche < LWTRANCHE_FIRST_USER_DEFINED; tranche++)
		append(&out, PG_WAIT_LWLOCK | tranche);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}
