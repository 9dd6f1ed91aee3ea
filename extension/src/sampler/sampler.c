/*
 * sampler.c
 *	  The background worker that samples all sessions.
 *
 * The worker is attached to shared memory and connected to no database. It
 * reads only shared catalogs, for the names of databases and roles. Each turn
 * of the loop does the pending work and sleeps until the next tick. No step
 * takes long, and none waits for a user's session.
 *
 * ereport() below ERROR checks for interrupts, and a cancel would become an
 * error. So messages are sent with interrupts held.
 *
 * An error ends the worker with exit code 1. The postmaster starts it again
 * after five seconds; the server continues.
 *
 * Locking: none here; the files that it calls say which locks they take.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <math.h>
#include <signal.h>

#include "access/xlog.h"
#include "common/pg_prng.h"
#include "libpq/pqsignal.h"
#include "pgstat.h"
#include "port.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/clocks.h"
#include "core/compat.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "history/dictionary.h"
#include "history/meta.h"
#include "history/names.h"
#include "history/schema.h"
#include "history/writer.h"
#include "sampler/budget.h"
#include "sampler/changed_settings.h"
#include "sampler/cpu_kind.h"
#include "sampler/locks.h"
#include "sampler/recorder.h"
#include "sampler/recorder_catalog.h"
#include "sampler/recorder_statements.h"
#include "sampler/recorder_tables.h"
#include "sampler/sampler.h"
#include "sampler/schema_markers.h"
#include "sampler/server_metrics.h"
#include "sampler/slot_clock.h"
#include "statements/query_text.h"

#define RESTART_S			5
#define WRITER_TURN_US		200000
#define STATEMENTS_TURN_US	10000
#define LONGEST_SLEEP_US	2000000	/* longer than jittered ticks of 1 s */
#define CLOSE_PATIENCE_MS	100
#define LEAST_GAP_MS		10000	/* shorter gaps are just late ticks */
#define LOCK_TIMEOUT		"100ms"

static volatile sig_atomic_t stop_requested = false;
static volatile sig_atomic_t stop_sender = 0;

static TachoStatus status;
static SlotClock slot_clock;
static Budget budget;
static SessionScan *scan;
static MemoryContext turn_context;
static int64 writer_turn_us = 0;	/* CLOCK_BOOTTIME of the last one */
static int64 writer_pause_us = 0;	/* while the pipe is full */
static bool in_recovery;

void
sampler_init(void)
{
	BackgroundWorker worker = {0};

	if (IsBinaryUpgrade || settings_refusal())
		return;
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_S;
	strlcpy(worker.bgw_name, TACHO_WORKER_TYPE, BGW_MAXLEN);
	strlcpy(worker.bgw_type, TACHO_WORKER_TYPE, BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, TACHO_PREFIX, BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "tacho_sampler_main", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/*
 * Notes the sender of the signal: it separates a stopping server from a
 * terminated worker.
 */
static void
request_stop(int signal, siginfo_t *info, void *machine_context)
{
	int			save_errno = errno;

	stop_sender = info != NULL ? info->si_pid : 0;
	stop_requested = true;
	SetLatch(MyLatch);
	errno = save_errno;
}

static void
install_signals(void)
{
	struct sigaction action;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = request_stop;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	BackgroundWorkerUnblockSignals();
}

/*
 * Position of the next tick in its slot, from 0 to 1: random, or 0 without
 * tacho.sample_jitter.
 */
static double
random_phase(void)
{
	return tacho_sample_jitter ? pg_prng_double(&pg_global_prng_state) : 0.0;
}

static int
interval_ms(void)
{
	return budget_interval_ms(&budget, tacho_sample_interval);
}

static UnixMs
wall_ms(void)
{
	return clock_wall_us() / 1000;
}

static void
mark_now(MarkerKind kind, const char *detail)
{
	recorder_marker(kind, wall_ms(), 0, 0, detail);
}

static void
mark_start(bool first_life)
{
	char		server[400];
	char		detail[500];

	meta_describe(server, sizeof(server));
	snprintf(detail, sizeof(detail), "%s, %s",
			 first_life ? "server started" : "sampler started again", server);
	mark_now(MARKER_START, detail);
	if (first_life && tacho_shared->after_crash)
		mark_now(MARKER_CRASH_RECOVERY,
				 "the server crashed and recovered");
}

static void
start_status(uint64 incarnation, int64 starts)
{
	status.worker_pid = MyProcPid;
	status.worker_starts = starts;
	status.worker_started = GetCurrentTimestamp();
	status.incarnation = incarnation;
	status.interval_ms = interval_ms();
}

static void
forget_worker(int code, Datum argument)
{
	query_text_want(false, false);
	statements_end();
	status.worker_pid = 0;
	status.writer_pid = 0;
	strlcpy(status.reason, "the sampler is not running", STATUS_TEXT_SIZE);
	status_publish(&status);
}

static void
start_worker(void)
{
	uint64		incarnation;
	int64		starts;

	install_signals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	SetConfigOption("lock_timeout", LOCK_TIMEOUT, PGC_SUSET, PGC_S_OVERRIDE);
	schema_check();
	if (!pg_strong_random(&incarnation, sizeof(incarnation)))
		incarnation = pg_prng_uint64(&pg_global_prng_state);
	starts = pg_atomic_add_fetch_u64(&tacho_shared->worker_starts, 1);

	CurrentMemoryContext = AllocSetContextCreate(TopMemoryContext,
												 "tacho sampler",
												 ALLOCSET_DEFAULT_SIZES);
	names_init();
	dictionary_init();
	scan = session_scan_create();
	cpu_kind_init(scan->slots);
	recorder_init(incarnation, starts == 1);
	writer_init(incarnation, recorder_hello);
	server_init();
	budget_init(&budget);
	turn_context = AllocSetContextCreate(CurrentMemoryContext, "tacho turn",
										 ALLOCSET_DEFAULT_SIZES);
	slot_clock_init(&slot_clock, (int64) interval_ms() * 1000, clock_wall_us(),
					random_phase());
	in_recovery = RecoveryInProgress();
	start_status(incarnation, starts);
	before_shmem_exit(forget_worker, (Datum) 0);
	query_text_want(true, true);
	mark_start(starts == 1);
	(void) changed_settings_look();
}

/* Applies the interval of the setting and the budget. */
static void
apply_interval(void)
{
	if (slot_clock.interval_us == (int64) interval_ms() * 1000)
		return;
	recorder_close(&status);
	slot_clock_set_interval(&slot_clock, (int64) interval_ms() * 1000,
							clock_wall_us(), random_phase());
	status.interval_ms = interval_ms();
}

static void
reload(void)
{
	ConfigReloadPending = false;
	HOLD_INTERRUPTS();
	ProcessConfigFile(PGC_SIGHUP);
	RESUME_INTERRUPTS();
	if (!changed_settings_look())
		return;
	recorder_settings();
	apply_interval();
}

/* Doubles or halves the interval by the worker's own use of CPU. */
static void
watch_budget(int64 boot_us)
{
	char		detail[200];
	int			before = interval_ms();

	status.cpu_us = clock_cpu_us();
	if (!budget_read(&budget, boot_us, status.cpu_us, tacho_max_cpu,
					 tacho_sample_interval) || interval_ms() == before)
		return;
	snprintf(detail, sizeof(detail),
			 "%d ms -> %d ms: the sampler used %.1f %% of a CPU, the limit is %.1f %%",
			 before, interval_ms(), budget.share, tacho_max_cpu);
	mark_now(MARKER_INTERVAL_CHANGED, detail);
	HOLD_INTERRUPTS();
	ereport(LOG,
			(errmsg("sample interval changed from %d ms to %d ms",
					before, interval_ms()),
			 errdetail("The sampler used %.1f %% of a CPU, \"tacho.max_cpu\" is %.1f %%.",
					   budget.share, tacho_max_cpu)));
	RESUME_INTERRUPTS();
	apply_interval();
}

static void
watch_recovery(void)
{
	char		server[400];
	char		detail[500];

	if (!in_recovery || RecoveryInProgress())
		return;
	in_recovery = false;
	meta_describe(server, sizeof(server));
	snprintf(detail, sizeof(detail), "the standby was promoted: %s",
			 server);
	mark_now(MARKER_PROMOTION, detail);
	recorder_settings();
}

static void
mark_step(const SlotTick *due, UnixMs now)
{
	char		detail[100];

	snprintf(detail, sizeof(detail), "the wall clock went %s by %.3f s",
			 due->step_us > 0 ? "forward" : "back",
			 fabs((double) due->step_us) / 1e6);
	recorder_marker(MARKER_CLOCK_STEP, now, 0, 0, detail);
}

/*
 * Marks a long gap, in which the sampler was stopped or got no CPU. The slots
 * without a tick are known in any case; the marker gives the reason.
 */
static void
mark_gap(const SlotTick *due, UnixMs now)
{
	int64		lost_ms = due->missed * interval_ms();
	char		detail[100];

	if (due->missed < 2 || lost_ms < LEAST_GAP_MS)
		return;
	snprintf(detail, sizeof(detail), "the sampler did not run for %.1f s",
			 (double) due->elapsed_ms / 1e3);
	recorder_marker(MARKER_GAP, now, due->slot_time - lost_ms, due->slot_time,
					detail);
}

static void
note_cost(int64 cost_us)
{
	status.tick_cost_us = cost_us;
	status.ticks_cpu_us += cost_us;
	status.tick_costs[Min(recorder_cost_step(cost_us), COST_STEPS - 1)]++;
}

/*
 * Takes a tick. With query_text = raw the scan copies the activity of clients
 * without a query id, too. In other modes it cannot: such texts cannot be
 * normalized.
 */
static void
take_tick(int64 wall_us)
{
	int64		cpu_before = clock_cpu_us();
	int64		boot_us = clock_boot_us();
	SlotTick	due = slot_clock_take(&slot_clock, wall_us, boot_us,
									  random_phase());

	if (due.step_us != 0)
	{
		recorder_close(&status);
		mark_step(&due, wall_us / 1000);
	}
	mark_gap(&due, wall_us / 1000);
	session_scan_run(scan, tacho_query_text == QUERY_TEXT_RAW);
	cpu_kind_read(scan, interval_ms());
	strlcpy(status.cpu_trouble, cpu_kind_trouble(), STATUS_TEXT_SIZE);
	locks_find(scan, wall_us - TACHO_EPOCH_OFFSET_US, interval_ms());
	recorder_tick(&due, interval_ms(), wall_us, boot_us, cpu_before, scan,
				  &status);
	status.last_tick = wall_us - TACHO_EPOCH_OFFSET_US;
	watch_recovery();
	recorder_texts(due.slot_time, &status);
	recorder_close_before(slot_clock.slot * slot_clock.interval_us / 1000,
						  &status);
	note_cost(clock_cpu_us() - cpu_before);
}

/*
 * Takes a turn of the writer. While its pipe is full, the turns become rarer.
 */
static void
take_writer_turn(int64 boot_us)
{
	int64		buffered = status.bytes_buffered;

	writer_turn_us = boot_us;
	writer_turn(boot_us / 1000, &status);
	if (!writer_is_behind())
		writer_pause_us = WRITER_TURN_US;
	else if (status.bytes_buffered < buffered || writer_pause_us == 0)
		writer_pause_us = 10000;
	else
		writer_pause_us = Min(writer_pause_us * 2, LONGEST_SLEEP_US);
}

/* Time until the next tick or writer turn. */
static int64
sleep_us(void)
{
	int64		tick = slot_clock_wait_us(&slot_clock, clock_wall_us());
	int64		writer = LONGEST_SLEEP_US;

	/* an acknowledgement can wait for the next tick */
	if (writer_is_behind() || status.writer_pid == 0)
		writer = writer_turn_us + writer_pause_us - clock_boot_us();
	if (statements_turn_again() || tables_turn_again() || catalog_turn_again())
		writer = Min(writer, STATEMENTS_TURN_US);
	return Max(0, Min(Min(tick, writer), LONGEST_SLEEP_US));
}

static void
take_turn(void)
{
	int64		wall_us = clock_wall_us();
	int64		boot_us = clock_boot_us();

	if (ConfigReloadPending)
		reload();
	names_catch_up();
	schema_markers_turn(wall_us);
	if (server_is_due(boot_us))
	{
		server_measure(scan, wall_us, boot_us, &status);
		status.memory_bytes = MemoryContextMemAllocated(TopMemoryContext, true);
	}
	if (slot_clock_wait_us(&slot_clock, wall_us) == 0)
	{
		take_tick(wall_us);
		watch_budget(boot_us);
	}
	statements_turn(wall_us, boot_us, &status);
	tables_turn(wall_us, boot_us);
	catalog_turn(wall_us, boot_us);
	if (boot_us - writer_turn_us >= writer_pause_us)
	{
		take_writer_turn(boot_us);
		status_publish(&status);
	}
}

/* Ends the worker: the server stops, or a user has terminated it. */
static void
stop_worker(void)
{
	bool		server = stop_sender == PostmasterPid;

	statements_finish(clock_wall_us(), clock_boot_us(), &status);
	tables_finish(clock_wall_us(), clock_boot_us());
	mark_now(MARKER_STOP, server ? "server stopped" : "sampler terminated");
	recorder_close(&status);
	writer_turn(clock_boot_us() / 1000, &status);
	writer_close(CLOSE_PATIENCE_MS);
	proc_exit(1);
}

void
tacho_sampler_main(Datum argument)
{
	static uint32 wait_event = 0;

	start_worker();
	for (;;)
	{
		int64		wait_us;

		/*
		 * nothing can be cancelled: this was a lock timeout that came too
		 * late
		 */
		QueryCancelPending = false;
		CHECK_FOR_INTERRUPTS();
		ResetLatch(MyLatch);
		if (stop_requested)
			stop_worker();
		MemoryContextSwitchTo(turn_context);
		take_turn();
		MemoryContextReset(turn_context);
		wait_us = sleep_us();
		if (wait_us > 0)
			(void) WaitLatch(MyLatch,
							 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 (wait_us + 999) / 1000,
							 compat_wait_event(&wait_event, "TachoSampler"));
	}
}
