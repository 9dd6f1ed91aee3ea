/*
 * hooks.c
 *	  The hooks through which statements are measured.
 *
 * The hooks are installed when shared memory is made, after all preloaded
 * libraries have installed theirs. So these hooks are the outermost, whatever
 * the order of loading. Other extensions see and change statements after
 * them. No hook here changes a query identifier.
 *
 * These hooks count the same statements, at the same nesting levels, as
 * pg_stat_statements of the same major version. A record of this process,
 * found by its QueryDesc, follows an execution. A callback of the executor's
 * memory context releases it, however the execution ends. Errors are caught
 * only where the nesting level must be restored. An error that goes to the
 * client in any case is counted when it is reported (failures.h).
 *
 * No function here raises an error of its own; called functions may.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "storage/proc.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"

#include "core/hot.h"
#include "core/settings.h"
#include "core/utility_hook.h"
#include "plans/plan_ids.h"
#include "plans/running_plan.h"
#include "statements/executed.h"
#include "statements/failures.h"
#include "statements/hooks.h"
#include "statements/message_tags.h"
#include "statements/plan_measures.h"
#include "statements/plan_trees.h"
#include "statements/secrets.h"
#include "statements/statements.h"
#include "statements/statements_alias.h"
#include "statements/statements_members.h"
#include "statements/usage.h"

typedef struct Execution
{
	struct Execution *next;		/* started before, or next unused one */
	const QueryDesc *query;
	Oid			user;			/* at its start */
	int			level;			/* at its start */
	int64		plan_id;
	double		ms;
	UsageDraw	draw;
	MemoryContextCallback callback;
	StatementDelta delta;
} Execution;

static HOT_DATA post_parse_analyze_hook_type previous_post_parse_analyze = NULL;
static HOT_DATA planner_hook_type previous_planner = NULL;
static HOT_DATA ExecutorStart_hook_type previous_start = NULL;
static HOT_DATA ExecutorRun_hook_type previous_run = NULL;
static HOT_DATA ExecutorFinish_hook_type previous_finish = NULL;
static HOT_DATA ExecutorEnd_hook_type previous_end = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/*
 * nesting depth of executors and utility commands, and of planners: from 17
 * on `level` has both (compat.h)
 */
static HOT_DATA int level = 0;
static HOT_DATA int plan_level = 0;

static HOT_DATA Execution *running = NULL; /* newest first */
static HOT_DATA Execution *unused = NULL;
static HOT_DATA int unused_count = 0;

#define UNUSED_MAX 16

/* ---- counted statements ---- */

static inline bool
wanted(int depth)
{
	int			track = setting_track();

	return track == STATEMENTS_TRACK_ALL ||
		(track == STATEMENTS_TRACK_TOP && depth == 0);
}

static inline bool
tracked(int depth)
{
	return wanted(depth) && !IsParallelWorker();
}

/* EXECUTE and PREPARE are not counted: the statement that they execute is. */
static inline bool
counts_as_utility(const Node *statement)
{
	return !IsA(statement, ExecuteStmt) && !IsA(statement, PrepareStmt) &&
		(COMPAT_TRACKS_DEALLOCATE || !IsA(statement, DeallocateStmt));
}

static pg_attribute_hot void
make_key(StatementKey *key, uint64 query_id)
{
	*key = (StatementKey) {
		.query_id = query_id,
		.user_id = GetUserId(),
		.database_id = MyDatabaseId,
		.toplevel = level == 0,
	};
}

/* Adds to the entry of a statement. Without a string it gets no text. */
static pg_attribute_hot void
store(uint64 query_id, StatementDelta *delta, const StatementSource *source)
{
	StatementKey key;

	make_key(&key, query_id);
	statements_add(&key, delta, source->string ? source : NULL);
}

/*
 * An error leaves a statement, counted or not. To be called inside of
 * PG_CATCH, when `level` is the statement's level again.
 */
static inline void
error_leaves(void)
{
	if (level == 0)
		failures_leave();
}

/*
 * Counts a failure for `user`. The error may come from a function of another
 * user, whose identity is reset only when the transaction ends. To be called
 * inside of PG_CATCH, as error_leaves(). `delta` has the resources used in
 * `ms`; NULL = the statement was not executed yet.
 */
static void
store_failure(Oid user, uint64 query_id, const StatementSource *source,
			  StatementDelta *delta, double ms)
{
	StatementKey key;

	make_key(&key, query_id);
	key.user_id = user;
	failures_count(&key, source->string ? source : NULL, delta, ms);
}

/* ---- executions ---- */

static pg_attribute_hot Execution *
execution_find(const QueryDesc *query)
{
	Execution  *execution = running;

	while (execution && execution->query != query)
		execution = execution->next;
	return execution;
}

/* The executor's memory is freed: the execution has ended or failed. */
static pg_attribute_hot void
execution_release(void *arg)
{
	Execution  *execution = arg;
	Execution **at = &running;

	while (*at != execution)
		at = &(*at)->next;
	*at = execution->next;
	if (unused_count < UNUSED_MAX)
	{
		execution->next = unused;
		unused = execution;
		unused_count++;
	}
	else
		pfree(execution);
}

/* Makes a record that follows the execution, if there is memory for it. */
static pg_attribute_hot void
execution_follow(const QueryDesc *query, int64 plan_id)
{
	Execution  *execution = unused;

	if (execution)
	{
		unused = execution->next;
		unused_count--;
	}
	else
		execution = MemoryContextAllocExtended(TopMemoryContext, sizeof(Execution),
											   MCXT_ALLOC_NO_OOM);
	if (execution == NULL)
		return;
	execution->query = query;
	execution->user = GetUserId();
	execution->level = level;
	execution->plan_id = plan_id;
	execution->ms = 0;
	execution->draw = usage_draw(query->plannedstmt->queryId, level == 0);
	usage_clear(&execution->delta);
	execution->next = running;
	running = execution;
	execution->callback.func = execution_release;
	execution->callback.arg = execution;
	MemoryContextRegisterResetCallback(query->estate->es_query_cxt,
									   &execution->callback);
}

static void
execution_failed(Execution *execution)
{
	const QueryDesc *query = execution->query;
	const StatementSource source = source_of(query);

	if (tracked(level))
		store_failure(execution->user, query->plannedstmt->queryId, &source,
					  &execution->delta, execution->ms);
}

/* A piece of an execution begins. `execution` is NULL if it is not followed. */
static inline void
piece_begin(const QueryDesc *query, const Execution *execution, UsageStart *start)
{
	if (execution)
		usage_begin(start, execution->draw);
	running_tags_enter(query);
	running_plan_enter(query->plannedstmt, execution != NULL && execution->level == 0 ?
					   query->plannedstmt->queryId : 0);
	level++;
}

/* To be called inside of PG_CATCH. */
static inline void
piece_failed(Execution *execution, const UsageStart *start)
{
	level--;
	running_plan_leave();
	error_leaves();
	if (execution == NULL)
		return;
	execution->ms += usage_end(start, &execution->delta);
	plan_measures_end(execution->query, execution->user, execution->plan_id, execution->ms, true);
	execution_failed(execution);
}

static inline void
piece_end(Execution *execution, const UsageStart *start)
{
	level--;
	running_plan_leave();
	if (execution == NULL)
		return;
	execution->ms += usage_end(start, &execution->delta);
	/* once an execution has become long, each later piece is measured */
	if (unlikely(execution->ms >= LONG_MS) && tacho_statements_cpu != STATEMENTS_CPU_OFF)
		execution->draw = (UsageDraw) {1, execution->draw.run_queue};
}

/*
 * True if ExecutorFinish has work to do: remaining changes, or triggers. If
 * not, nothing can be executed or fail in it.
 */
static bool
finishes(const QueryDesc *query)
{
	return query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE;
}

/* ---- hooks ---- */

/*
 * Ends an attempt of an earlier message whose error was never reported, because
 * another extension caught it. Call it before reading `level`.
 */
static inline void
take_back_level(void)
{
	if (COMPAT_ONE_NESTING_LEVEL && unlikely(failures_attempt_left()))
		failures_attempt_failed();
}

static pg_attribute_hot void
on_post_parse_analyze(ParseState *pstate, Query *query, CompatJumble *jumble)
{
	StatementKey key;
	StatementSource source;

	message_tags_analyzed(pstate->p_sourcetext, level == 0);
	if (previous_post_parse_analyze)
		previous_post_parse_analyze(pstate, query, jumble);
	take_back_level();
	if (!tracked(level) || query->queryId == 0)
		return;
	if (query->utilityStmt && setting_track_utility() &&
		(COMPAT_TRACKS_DEALLOCATE ? IsA(query->utilityStmt, ExecuteStmt)
		 : !counts_as_utility(query->utilityStmt)))
		return;

	/* without constants there is no need to make the text before execution */
	if (jumble == NULL || jumble->clocations_count == 0)
		return;

	/* a secret may be in it: the execution gives the entry its text */
	if (query->utilityStmt &&
		(secrets_mask_all() ||
		 secrets_in(query->utilityStmt, pstate->p_sourcetext,
					query->stmt_location, query->stmt_len)))
		return;
	make_key(&key, query->queryId);
	source = (StatementSource) {
		.string = pstate->p_sourcetext,
		.location = query->stmt_location,
		.length = query->stmt_len,
		.jumble = jumble,
	};
	statements_remember(&key, &source);
}

static inline PlannedStmt *
call_planner(COMPAT_PLANNER_PARAMS)
{
	return previous_planner ? previous_planner(COMPAT_PLANNER_ARGS)
		: standard_planner(COMPAT_PLANNER_ARGS);
}

/* Plans and catches errors, to count them or to restore the nesting level. */
static PlannedStmt *
plan_guarded(bool known, bool measured, bool nests, COMPAT_PLANNER_PARAMS)
{
	int		   *const volatile depth = COMPAT_ONE_NESTING_LEVEL ? &level : &plan_level;
	const volatile Oid user = GetUserId();
	const volatile uint64 query_id = parse->queryId;
	const StatementSource source = {
		query_string, parse->stmt_location, parse->stmt_len
	};
	PlannedStmt *result;
	UsageStart	start;

	if (unlikely(measured))
		usage_begin(&start, (UsageDraw) {0, 0});
	*depth += nests;
	PG_TRY();
	{
		result = call_planner(COMPAT_PLANNER_ARGS);
	}
	PG_CATCH();
	{
		*depth -= nests;
		error_leaves();
		if (known)
			store_failure(user, query_id, &source, NULL, 0);
		PG_RE_THROW();
	}
	PG_END_TRY();
	*depth -= nests;
	if (unlikely(measured))
	{
		StatementDelta delta;

		usage_clear(&delta);
		usage_planned(&delta, usage_end(&start, &delta));
		store(query_id, &delta, &source);
	}
	return result;
}

static inline PlannedStmt *
plan(COMPAT_PLANNER_PARAMS)
{
	bool		known;
	bool		measured;
	PlannedStmt *result;

	take_back_level();
	known = query_string != NULL && parse->queryId != 0 &&
		tracked(level + plan_level);
	measured = known && setting_track_planning();
	if (measured || level > 0 || !failures_go_to_client(query_string))
		return plan_guarded(known, measured, COMPAT_ONE_NESTING_LEVEL || measured,
							COMPAT_PLANNER_ARGS);
	failures_attempt_begin(known, parse->queryId, query_string,
						   parse->stmt_location, parse->stmt_len);
	if (COMPAT_ONE_NESTING_LEVEL)
	{
		/* failures.c sets it to 0 if it reports an error of the planner */
		failures_attempt.level = &level;
		level = 1;
	}
	result = call_planner(COMPAT_PLANNER_ARGS);
	if (COMPAT_ONE_NESTING_LEVEL)
		level = 0;
	failures_attempt_end();
	return result;
}

static pg_attribute_hot PlannedStmt *
on_planner(COMPAT_PLANNER_PARAMS)
{
	bool		has_tags = message_tags_may_be(query_string, level == 0);
	PlannedStmt *result = plan(COMPAT_PLANNER_ARGS);

	if (unlikely(has_tags))
		running_tags_note(result, query_string);
	return result;
}

/* Makes the statement's entry: parallel workers only add to an existing one. */
static void
expect_workers(const QueryDesc *query)
{
	const PlannedStmt *plan = query->plannedstmt;
	const StatementSource source = source_of(query);
	StatementKey key;

	make_key(&key, plan->queryId);
	statements_remember(&key, &source);
}

static inline void
call_start(QueryDesc *queryDesc, int eflags)
{
	if (previous_start)
		previous_start(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

static void
start_guarded(bool counted, QueryDesc *queryDesc, int eflags)
{
	const PlannedStmt *plan = queryDesc->plannedstmt;
	const StatementSource source = source_of(queryDesc);
	const Oid	user = GetUserId();

	PG_TRY();
	{
		call_start(queryDesc, eflags);
	}
	PG_CATCH();
	{
		error_leaves();
		if (counted)
			store_failure(user, plan->queryId, &source, NULL, 0);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static pg_attribute_hot void
on_executor_start(QueryDesc *queryDesc, int eflags)
{
	const PlannedStmt *plan = queryDesc->plannedstmt;
	bool		counted;
	int64		plan_id;

	take_back_level();
	counted = plan->queryId != 0 && tracked(level);
	if (executed_pending != NULL && level == 0)
		executed_start(plan->queryId);
	if (level == 0 && failures_go_to_client(queryDesc->sourceText))
	{
		failures_attempt_begin(counted, plan->queryId, queryDesc->sourceText,
							   plan->stmt_location, plan->stmt_len);
		call_start(queryDesc, eflags);
		failures_attempt_end();
	}
	else
		start_guarded(counted, queryDesc, eflags);
	/* samples show the outermost plan, counted or not: FETCH of a cursor */
	if (plan->queryId == 0 || (!counted && running_plan_depth > 0))
		return;
	plan_id = plan_id_of(plan);
	plan_trees_see(queryDesc, plan_id, eflags, counted);
	if (!counted)
		return;
	execution_follow(queryDesc, plan_id);
	if (plan->parallelModeNeeded && level == 0)
		expect_workers(queryDesc);
}

static pg_attribute_hot void
call_run(COMPAT_RUN_PARAMS)
{
	if (previous_run)
		previous_run(COMPAT_RUN_ARGS);
	else
		standard_ExecutorRun(COMPAT_RUN_ARGS);
}

/*
 * Adds the CPU time and I/O of a parallel worker. The leader's counters
 * include the worker's blocks and WAL, but not these.
 *
 * The worker's query identifier is the one that the leader reports: the
 * identifier of the leader's top-level statement. It belongs to the user of
 * that statement, not to the owner of a function that the worker's query may
 * be in. The leader makes the entry; if there is none, the worker adds
 * nothing.
 */
static void
run_in_worker(COMPAT_RUN_PARAMS)
{
	uint64		reported = queryDesc->plannedstmt->queryId;
	uint64		query_id = executed_in_leader(reported);
	bool		counted = query_id != 0 && wanted(level) && level == 0 &&
		tacho_statements_cpu != STATEMENTS_CPU_OFF;
	int64		plan_id = 0;
	StatementKey key;
	StatementDelta delta;
	UsageStart	start;

	if (level == 0 && query_id != reported)
		executed_set(reported, query_id);
	if (level == 0)
		plan_id = running_plan_of_leader(query_id);
	make_key(&key, query_id);
	key.user_id = GetOuterUserId();
	usage_clear(&delta);
	usage_begin(&start, (UsageDraw) {counted, counted});
	level++;
	PG_TRY();
	{
		call_run(COMPAT_RUN_ARGS);
	}
	PG_FINALLY();
	{
		level--;
		if (level == 0)
			executed_clear();
	}
	PG_END_TRY();
	usage_end(&start, &delta);
	delta.groups &= GROUP_cpu | GROUP_faults;
	delta.weight = (UsageDraw) {1, 1};
	delta.plan_id = plan_id;
	delta.counters.sampled_exec_time = 0;	/* it is in the leader's time */
	if (counted)
		statements_add_if_there(&key, &delta);
}

static pg_attribute_hot void
on_executor_run(COMPAT_RUN_PARAMS)
{
	Execution  *volatile execution;
	UsageStart	start;

	if (unlikely(IsParallelWorker()))
	{
		run_in_worker(COMPAT_RUN_ARGS);
		return;
	}
	execution = execution_find(queryDesc);
	piece_begin(queryDesc, execution, &start);
	PG_TRY();
	{
		call_run(COMPAT_RUN_ARGS);
	}
	PG_CATCH();
	{
		piece_failed(execution, &start);
		PG_RE_THROW();
	}
	PG_END_TRY();
	plan_measures_ran(queryDesc, direction, count);
	piece_end(execution, &start);
}

static pg_attribute_hot void
call_finish(QueryDesc *queryDesc)
{
	if (previous_finish)
		previous_finish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
}

static pg_attribute_hot void
on_executor_finish(QueryDesc *queryDesc)
{
	Execution  *volatile execution;
	UsageStart	start;

	if (!finishes(queryDesc))
	{
		call_finish(queryDesc);
		return;
	}
	execution = execution_find(queryDesc);
	piece_begin(queryDesc, execution, &start);
	PG_TRY();
	{
		call_finish(queryDesc);
	}
	PG_CATCH();
	{
		piece_failed(execution, &start);
		PG_RE_THROW();
	}
	PG_END_TRY();
	piece_end(execution, &start);
}

/*
 * Counts for the level and the user at the execution's start, whose entry has
 * a text without constants. A cursor that a function has opened may end at
 * COMMIT, at level 0 and as another user.
 */
static pg_attribute_hot void
on_executor_end(QueryDesc *queryDesc)
{
	Execution  *execution = execution_find(queryDesc);
	PlannedStmt *plan = queryDesc->plannedstmt;

	failures_forget();
	if (execution && plan->queryId != 0 && wanted(execution->level))
	{
		const StatementSource source = source_of(queryDesc);
		const StatementKey key = {
			.query_id = plan->queryId,
			.user_id = execution->user,
			.database_id = MyDatabaseId,
			.toplevel = execution->level == 0,
		};

		plan_measures_end(queryDesc, execution->user, execution->plan_id, execution->ms, false);
		execution->delta.plan_id = execution->plan_id;
		usage_executor(&execution->delta, queryDesc);
		usage_executed(&execution->delta, execution->ms,
					   compat_rows(queryDesc->estate), execution->draw);
		statements_add(&key, &execution->delta, source.string ? &source : NULL);
	}
	if (previous_end)
		previous_end(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

static void
call_utility(UTILITY_PARAMS)
{
	bool		adopts = statements_adopts(pstmt->utilityStmt);

	if (previous_utility)
		previous_utility(UTILITY_ARGS);
	else
		standard_ProcessUtility(UTILITY_ARGS);
	if (adopts)
		statements_adopt_members();
}

/* Runs a counted command. The statement may be gone when it returns. */
static void
run_utility(UTILITY_PARAMS)
{
	uint64		query_id = pstmt->queryId;
	const Oid	user = GetUserId();
	const CommandText text =
		secrets_command_text(pstmt, queryString,
							 statements_text_there(query_id, level == 0));
	UsageDraw	draw = usage_draw(query_id, level == 0);
	UsageStart	start;
	StatementDelta delta;
	double		ms;

	usage_begin(&start, draw);
	level++;
	PG_TRY();
	{
		call_utility(UTILITY_ARGS);
	}
	PG_CATCH();
	{
		level--;
		error_leaves();
		usage_clear(&delta);
		ms = usage_end(&start, &delta);
		store_failure(user, query_id, &text.source, &delta, ms);
		secrets_command_free(&text);
		PG_RE_THROW();
	}
	PG_END_TRY();
	level--;
	failures_forget();
	usage_clear(&delta);
	ms = usage_end(&start, &delta);
	usage_executed(&delta, ms, usage_utility_rows(qc), draw);
	store(query_id, &delta, &text.source);
	secrets_command_free(&text);
}

/*
 * Forgets the statement that a top-level EXECUTE executes. To be called when
 * a command has ended, because it may have been one.
 */
static inline void
forget_execute(void)
{
	if (level == 0)
	{
		executed_pending = NULL;
		executed_clear();
	}
}

/* Runs an uncounted command. `nests`: its statements are not at top level. */
static void
pass_utility(bool nests, UTILITY_PARAMS)
{
	level += nests;
	PG_TRY();
	{
		call_utility(UTILITY_ARGS);
	}
	PG_CATCH();
	{
		level -= nests;
		forget_execute();
		error_leaves();
		PG_RE_THROW();
	}
	PG_END_TRY();
	level -= nests;
	forget_execute();
	failures_forget();
}

static void
on_process_utility(UTILITY_PARAMS)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		prepared = IsA(statement, ExecuteStmt) || IsA(statement, PrepareStmt);
	bool		executes = message_tags_command(pstmt, queryString, context, level == 0);
	bool		counted;

	take_back_level();
	counted = setting_track_utility() && tracked(level);
	if (counted && pstmt->queryId != 0 && counts_as_utility(statement))
		run_utility(UTILITY_ARGS);
	else
	{
		bool		nests = COMPAT_ONE_NESTING_LEVEL ? !prepared
			: counted && counts_as_utility(statement);

		if (counted && level == 0 && IsA(statement, ExecuteStmt))
			executed_expect(castNode(ExecuteStmt, statement));
		pass_utility(nests, UTILITY_ARGS);
	}
	if (executes)
		message_tags_executed();
}

/* ---- setting up ---- */

void
hooks_install(void)
{
	static bool installed = false;

	/* memory is made again after a crash, but the hooks are still installed */
	if (installed)
		return;
	installed = true;
	previous_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = on_post_parse_analyze;
	previous_planner = planner_hook;
	planner_hook = on_planner;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = on_executor_start;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = on_executor_run;
	previous_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = on_executor_finish;
	previous_end = ExecutorEnd_hook;
	ExecutorEnd_hook = on_executor_end;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = on_process_utility;
	failures_init();
}

pg_attribute_hot bool
hooks_at_toplevel(void)
{
	return level == 0;
}
