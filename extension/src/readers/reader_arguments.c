/*
 * reader_arguments.c
 *	  Turns the arguments of a SQL function into options of `tacho query`.
 *
 * Names and types come from pg_proc, so a new argument of a reader function
 * needs no line here. An argument `name_of_it` becomes `--name-of-it=value`;
 * null arguments are left out. If `tz` is null, --session-tz passes the
 * session's time zone, because buckets begin at its hours and midnights.
 *
 * Locking: none. Memory: current context; ReaderFunction in fn_mcxt.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "core/encoding.h"
#include "core/settings.h"
#include "readers/reader.h"

/* options that every call has, and --session-tz */
#define FIXED_ARGUMENTS		18

static bool
is_input(const char *modes, int i)
{
	return modes == NULL || modes[i] == PROARGMODE_IN ||
		modes[i] == PROARGMODE_INOUT || modes[i] == PROARGMODE_VARIADIC;
}

/* Option name of an argument: by-leader for by_leader. */
static char *
option_name(const char *argname)
{
	char	   *name = pstrdup(argname);

	for (char *p = name; *p; p++)
	{
		if (*p == '_')
			*p = '-';
	}
	return name;
}

static ReaderFunction *
load_function(Oid oid)
{
	ReaderFunction *function = palloc0(sizeof(ReaderFunction));
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Oid		   *types;
	char	  **names;
	char	   *modes;
	int			n;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);

	n = get_func_arg_info(tuple, &types, &names, &modes);
	function->name =
		pstrdup(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname));
	if (function->name[0] == '_')
		function->name++;		/* called by an SQL function of that name */
	function->argnames = palloc0(sizeof(char *) * Max(n, 1));
	function->argtypes = palloc0(sizeof(Oid) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (!is_input(modes, i))
			continue;
		if (names == NULL || names[i][0] == '\0')
			elog(ERROR, "argument %d of function \"%s\" has no name",
				 i + 1, function->name);
		function->argnames[function->nargs] = option_name(names[i]);
		function->argtypes[function->nargs] = types[i];
		function->nargs++;
	}
	ReleaseSysCache(tuple);
	return function;
}

ReaderFunction *
reader_function(FmgrInfo *flinfo)
{
	if (flinfo->fn_extra == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(flinfo->fn_mcxt);

		flinfo->fn_extra = load_function(flinfo->fn_oid);
		MemoryContextSwitchTo(old);
	}
	return flinfo->fn_extra;
}

/*
 * A time in RFC 3339, in UTC with microseconds: 2026-01-02T03:04:05.000006Z.
 */
static char *
timestamptz_argument(const char *name, TimestampTz value)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (TIMESTAMP_NOT_FINITE(value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be infinite", name),
				 errhint("Omit it to use its default.")));
	if (timestamp2tm(value, NULL, &tm, &fsec, NULL, NULL) != 0 ||
		tm.tm_year < 1 || tm.tm_year > 9999)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("argument \"%s\" is out of range", name),
				 errdetail("It must lie between the years 1 and 9999.")));
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
					tm.tm_year, tm.tm_mon, tm.tm_mday,
					tm.tm_hour, tm.tm_min, tm.tm_sec, (int) fsec);
}

/*
 * An interval in microseconds, such as 90000000us. A day counts as 24 hours.
 * An interval with months, or an infinite one, raises an error.
 */
static char *
interval_argument(const char *name, const Interval *value)
{
	int64		us;

	if (value->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be an interval of fixed length",
						name),
				 errdetail("Months and years differ in length."),
				 errhint("Use days or hours.")));
	if (pg_mul_s64_overflow(value->day, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, value->time, &us))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("argument \"%s\" is out of range", name)));
	return psprintf(INT64_FORMAT "us", us);
}

/*
 * Converts a value to UTF-8, the encoding of all program arguments. Raises an
 * error if that is impossible: such a value could match nothing.
 */
static char *
to_utf8(char *value)
{
	int			length = strlen(value);

	if (encoding_is_ascii(value, length))
		return value;
	return pg_server_to_any(value, length, PG_UTF8);
}

static char *
argument_value(const char *name, Oid type, Datum value)
{
	Oid			output;
	bool		is_varlena;

	switch (type)
	{
		case BOOLOID:
			return DatumGetBool(value) ? "true" : "false";
		case TIMESTAMPTZOID:
			return timestamptz_argument(name, DatumGetTimestampTz(value));
		case INTERVALOID:
			return interval_argument(name, DatumGetIntervalP(value));
		case TEXTOID:
			return to_utf8(TextDatumGetCString(value));
		default:
			getTypeOutputInfo(type, &output, &is_varlena);
			return to_utf8(OidOutputFunctionCall(output, value));
	}
}

char **
reader_arguments(const ReaderFunction *function, FunctionCallInfo fcinfo)
{
	char	  **argv;
	int			n = 0;

	argv = palloc0(sizeof(char *) * (FIXED_ARGUMENTS + function->nargs + 1));
	argv[n++] = "tacho";
	argv[n++] = "query";
	argv[n++] = function->name;
	argv[n++] = psprintf("--tape=%s", tacho_directory_path());
	argv[n++] = "--format=copy";
	argv[n++] = psprintf("--memory-limit-mb=%d", reader_memory_mb());

	/* as in pg_stat_activity: other roles see only their own sessions */
	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
	{
		argv[n++] = psprintf("--owner=%s",
							 to_utf8(GetUserNameFromId(GetUserId(), false)));
		/*
		 * a dropped role may have had the same name, so the OID is needed too
		 */
		argv[n++] = psprintf("--owner-oid=%u", GetUserId());
	}

	for (int i = 0; i < function->nargs && i < PG_NARGS(); i++)
	{
		const char *name = function->argnames[i];

		if (!PG_ARGISNULL(i))
			argv[n++] = psprintf("--%s=%s", name,
								 argument_value(name, function->argtypes[i],
												PG_GETARG_DATUM(i)));
		else if (strcmp(name, "tz") == 0)
			argv[n++] = psprintf("--session-tz=%s",
								 to_utf8(pstrdup(pg_get_timezone_name(session_timezone))));
	}
	argv[n] = NULL;
	return argv;
}
