/*
 * recorder.c
 *	  Turns scans, markers and texts into frames for the writer.
 *
 * Memory: state lives in the context that is current when recorder_init() is
 * called; everything else is allocated in the caller's context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "mb/pg_wchar.h"

#include "core/clocks.h"
#include "core/settings.h"
#include "history/activity.h"
#include "history/dictionary.h"
#include "history/frame.h"
#include "history/meta.h"
#include "history/names.h"
#include "history/pending.h"
#include "history/schema.h"
#include "history/text_share.h"
#include "history/writer.h"
#include "sampler/given_names.h"
#include "sampler/horizon.h"
#include "sampler/locks.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"
#include "sampler/recorder_catalog.h"
#include "sampler/recorder_relations.h"
#include "sampler/recorder_trees.h"
#include "sampler/release_markers.h"
#include "statements/query_text.h"

#define TICKS_PER_FRAME		1000
#define SAMPLE_COLUMNS		(MODEL_MAX_SAMPLE_COLUMN + 1)
#define SENT_TEXTS			4096	/* power of two */

/* Coded values of a sample row, by column id. */
typedef uint64 SampleRow[SAMPLE_COLUMNS];

/* The newest row of a slot in the open frame. */
typedef struct HeldRow
{
	uint64		session;		/* 0 = none */
	int			row;			/* in the section */
	int			at;				/* last tick of the frame with it */
} HeldRow;

/*
 * An activity that was sent: hashes of the activity and of its recorded text.
 * The key includes the role, because a role may be allowed to read only its
 * own texts.
 */
typedef struct SentText
{
	uint64		activity;		/* with its database and role; 0 = none */
	uint64		key;
} SentText;

static uint64 incarnation;
static bool first_life;
static Frame *frame;
static Frame *hello;
static bool frame_open = false;
static StringInfoData encoded;
static HeldRow *held;			/* by slot */
static int	slots;
static int	max_held;			/* slots above hold nothing */

/* the ticks of the open frame */
static UnixMs first_slot;
static UnixMs last_slot;

/* frames that were lost since the last one that found room */
static int64 lost_frames = 0;
static UnixMs lost_since = 0;
static UnixMs lost_until = 0;

/* texts: their day, and the activities that were sent */
static int64 text_day = -1;
static bool texts_lost = false; /* backends must put texts again */
static int	text_limit;			/* tacho.text_limit that left texts out */
static SentText sent_texts[SENT_TEXTS];
static TachoStatus *text_status;
static UnixMs text_now;

/* new settings have not reached the writer in a frame */
static bool settings_due = false;

static int64 seen_writer_starts = 0;

void
recorder_init(uint64 life, bool first)
{
	incarnation = life;
	first_life = first;
	frame = frame_create();
	hello = frame_create();
	initStringInfo(&encoded);
	slots = compat_status_slots();
	held = palloc0(sizeof(HeldRow) * slots);
	processes_init(slots);
	given_names_init();
	text_share_init();
	recorder_trees_init();
	text_limit = tacho_text_limit;
}

void
recorder_hello(StringInfo out, uint64 sequence, bool restart)
{
	frame_reset(hello, 0);
	meta_put_hello(hello, restart ? "writer restart" :
				   first_life ? "server start" : "worker restart");
	if (!frame_encode(hello, FRAME_HELLO, incarnation, sequence, out))
		elog(ERROR, "hello frame is too long");
}

/*
 * Asks backends again for texts and trees that were only in lost frames, or that
 * a lower limit left out.
 */
static void
ask_for_lost_texts(void)
{
	if (!texts_lost)
		return;
	texts_lost = false;
	memset(sent_texts, 0, sizeof(sent_texts));
	query_text_want(true, true);
}

static void put_lost_marker(void);
static void put_settings(void);

static void
open_frame(UnixMs base, int64 boot_ms)
{
	if (frame_open)
		return;
	if (seen_writer_starts != writer_starts())
	{
		seen_writer_starts = writer_starts();
		dictionary_redefine();
	}
	frame_reset(frame, base);
	frame_open = true;
	first_slot = last_slot = 0;
	text_share_frame();
	for (int slot = 0; slot < max_held; slot++)
		held[slot].session = 0;
	max_held = 0;
	dictionary_begin_frame(frame, boot_ms);
	if (lost_frames > 0)
		put_lost_marker();
	/* the frame with them was lost */
	if (settings_due)
		put_settings();
}

Frame *
recorder_frame(UnixMs now)
{
	open_frame(now, clock_boot_us() / 1000);
	return frame;
}

void
recorder_marker_row(const MarkerRow *marker)
{
	Section    *section = frame_section(frame, TABLE_marker);
	int			row = section_add(section);

	section_set(section, row, COL_marker_time, frame_time(frame, marker->time));
	section_set(section, row, COL_marker_kind, marker->kind);
	section_set(section, row, COL_marker_since, frame_time(frame, marker->since));
	section_set(section, row, COL_marker_until, frame_time(frame, marker->until));
#define FIELD(name) section_set(section, row, COL_marker_##name, marker->name)
	FIELD(detail);
	FIELD(command);
	FIELD(object_class);
	FIELD(object_oid);
	FIELD(object_name);
	FIELD(database);
	FIELD(username);
	FIELD(application);
	FIELD(client_addr);
	FIELD(old_value);
	FIELD(new_value);
	FIELD(outcome);
	FIELD(left_out);
#undef FIELD
}

void
recorder_marker(MarkerKind kind, UnixMs time, UnixMs since, UnixMs until,
				const char *detail)
{
	MarkerRow	marker = {.kind = kind, .time = time, .since = since, .until = until};

	open_frame(time, clock_boot_us() / 1000);
	marker.detail = dictionary_text(detail);
	recorder_marker_row(&marker);
}

static void
put_lost_marker(void)
{
	char		detail[100];

	snprintf(detail, sizeof(detail), INT64_FORMAT " frames found no room in the buffer",
			 lost_frames);
	recorder_marker(MARKER_FRAMES_LOST, frame_base(frame), lost_since,
					lost_until, detail);
}

static void
put_settings(void)
{
	settings_due = true;
	meta_put_settings(frame);
	writer_settings_changed();
}

/* True if a higher limit may admit texts or trees that were left out. */
static bool
limit_admits_more(void)
{
	bool		higher = text_limit != 0 && (tacho_text_limit == 0 || tacho_text_limit > text_limit);

	text_limit = tacho_text_limit;
	return higher && text_status != NULL &&
		(text_status->texts_over_limit > 0 || recorder_trees_over_limit());
}

void
recorder_settings(void)
{
	open_frame(frame_open ? frame_base(frame) : text_now, clock_boot_us() / 1000);
	put_settings();
	/* tacho.query_text may be different now */
	memset(sent_texts, 0, sizeof(sent_texts));
	texts_lost |= limit_admits_more();
}

/* Marks, once a day, that texts of this role are cut or left out. */
static void
tell_left_out(Oid database, Oid user)
{
	int			role_length;
	int			name_length;
	const char *role = dictionary_bytes(processes_role_name(user),
										&role_length);
	const char *name = dictionary_bytes(processes_database_name(database),
										&name_length);
	char		detail[STATUS_TEXT_SIZE];

	snprintf(detail, sizeof(detail),
			 "texts of role \"%.*s\" in database \"%.*s\" are truncated or omitted: its share of tacho.text_limit",
			 role_length, role, name_length, name);
	recorder_marker(MARKER_TEXTS_LEFT_OUT, text_now, text_now, 0, detail);
}

/*
 * The bytes of a text that fit into its role's share of the day; 0 = left
 * out. Sets *whole_length if the text is cut.
 */
static int
fit_text(Oid database, Oid user, int64 query, int encoding,
		 const char *bytes, int length, int *whole_length)
{
	bool		first;
	int			fit = text_share_take(TEXT_OF_QUERY, database, user,
									  (uint64) query ^ ((uint64) database << 32),
									  length, &first);

	if (first)
		tell_left_out(database, user);
	if (fit == 0)
	{
		text_status->texts_over_limit++;
		query_text_share_used(TEXT_OF_QUERY, database, user);
	}
	if (fit == length || fit == 0)
		return fit;
	if (*whole_length == 0)
		*whole_length = length;
	return PG_VALID_BE_ENCODING(encoding) ?
		pg_encoding_mbcliplen(encoding, bytes, length, fit) : fit;
}

/* Adds a text. The writer removes duplicates. */
static void
put_text(uint64 key, int64 query_id, Oid database, Oid user, int encoding,
		 const char *bytes, int length, int whole_length)
{
	Section    *section;
	int			row;
	uint64		database_name;
	uint64		user_name;

	length = fit_text(database, user, query_id != 0 ? query_id : (int64) key,
					  encoding, bytes, length, &whole_length);
	if (length == 0)
		return;
	text_status->texts_taken++;
	database_name = dictionary_use_name(processes_database_name(database));
	user_name = dictionary_use_name(processes_role_name(user));
	section = frame_section(frame, TABLE_text);
	row = section_add(section);
	section_set(section, row, COL_text_text_key, key);
	section_set(section, row, COL_text_query_id, frame_int(query_id));
	section_set(section, row, COL_text_database, database_name);
	section_set(section, row, COL_text_username, user_name);
	section_set(section, row, COL_text_encoding, encoding);
	section_set_bytes(section, COL_text_bytes, bytes, length);
	section_set(section, row, COL_text_length, whole_length);
	section_set(section, row, COL_text_user_oid, user);
}

static void
take_text(const QueryText *text)
{
	names_want_database(text->database);
	names_want_role(text->user);
	names_resolve();
	if (text->plan_id != 0)
	{
		recorder_put_tree(frame, text, text_now);
		return;
	}
	put_text(query_text_key(text->bytes, text->length), text->query_id,
			 text->database, text->user, text->encoding, text->bytes,
			 text->length, text->whole_length);
}

void
recorder_texts(UnixMs now, TachoStatus *status)
{
	int64		day = now / (24 * 60 * 60 * 1000);

	text_now = now;
	text_status = status;
	if (day != text_day)
	{
		text_day = day;
		text_share_day();
		recorder_relations_forget();
		recorder_trees_day();
		memset(sent_texts, 0, sizeof(sent_texts));
		query_text_want(true, true);
	}
	open_frame(now, clock_boot_us() / 1000);
	query_text_drain(take_text);
	recorder_trees_left_out(frame, now);
	status->texts_dropped = query_text_dropped();
}

/*
 * Records the activity of a session without a query id, such as "autovacuum:
 * VACUUM t", as a text. Returns the key of the text; 0 = nothing of it could
 * be recorded, which counts as a dropped text.
 */
static uint64
put_activity(const SessionRow *row, BackendType type)
{
	StringInfoData text;
	int			whole_length;
	uint64		key = 0;

	initStringInfo(&text);
	if (activity_text(&text, type, row->activity, row->activity_length,
					  &whole_length))
	{
		key = query_text_key(text.data, text.len);
		put_text(key, 0, row->database, row->user,
				 names_database_encoding(row->database), text.data, text.len,
				 whole_length);
	}
	else
		query_text_drop();
	pfree(text.data);
	return key;
}

/* Key of the text of a row without a query id, 0 = no text. */
static uint64
activity_key(const SessionRow *row, BackendType type)
{
	uint64		activity;
	SentText   *sent;

	if (row->activity == NULL || row->activity_length == 0 ||
		tacho_query_text == QUERY_TEXT_OFF || text_status == NULL)
		return 0;
	activity = query_text_key(row->activity, row->activity_length) ^
		((uint64) row->database << 32 | row->user);
	sent = &sent_texts[activity & (SENT_TEXTS - 1)];
	if (sent->activity != activity)
	{
		sent->key = put_activity(row, type);
		sent->activity = activity;
	}
	return sent->key;
}

/*
 * The tags of a row. A statement that waits for a lock in its analysis has not
 * published any, so they are read from its activity.
 */
static NameEntry *
tags_of(const SessionRow *row)
{
	int			encoding = names_database_encoding(row->database);
	int			length = row->tags_length;
	const char *tags = row->tags;
	char		own[TAGS_BYTES];

	if (tacho_statements && length == 0 && row->activity != NULL &&
		row->activity_length > 0)
	{
		length = comment_tags(row->activity, encoding, own);
		tags = own;
	}
	if (length == 0)
		return NULL;
	release_markers_see(row, tags, length, text_now);
	return given_tags(row->user, tags, length, encoding);
}

/* Codes a row, without its `at`. */
static void
code_row(const SessionRow *row, BackendType type, uint64 session,
		 SampleRow values)
{
	const char *progress = compat_progress_name(row->progress_command);
	bool		active = row->state == SESSION_ACTIVE ||
		row->state == SESSION_FASTPATH || row->state == SESSION_STATE_NONE;

	memset(values, 0, sizeof(SampleRow));
	values[COL_sample_session] = session;
	values[COL_sample_state] = row->state;
	if (row->failed)
	{
		values[COL_sample_marked] = 2;
		return;
	}
	values[COL_sample_wait] = dictionary_wait(row->wait);
	if (row->only_blocks)
		values[COL_sample_marked] = 1;
	if (active && row->wait == 0)
		values[COL_sample_cpu] = row->cpu ? row->cpu : CPU_NOT_KNOWN;
	values[COL_sample_statement] = dictionary_statement(row->query_id,
														row->plan_id,
														activity_key(row, type),
														tags_of(row));
	values[COL_sample_query_start] = frame_timestamp(frame, row->query_start);
	values[COL_sample_xact_start] = frame_timestamp(frame, row->xact_start);
	values[COL_sample_state_change] = frame_timestamp(frame, row->state_change);
	values[COL_sample_xmin] = row->xmin;
	values[COL_sample_xid] = row->xid;
	if (progress)
	{
		values[COL_sample_progress_command] = schema_label("progress", progress);
		values[COL_sample_progress_relation] = row->progress_relation;
	}
}

static void
add_row(Section *section, int at, const SampleRow values)
{
	int			row = section_add(section);

	section_set(section, row, COL_sample_at, at);
	for (int column = COL_sample_session; column < SAMPLE_COLUMNS; column++)
		section_set(section, row, column, values[column]);
}

static void
add_gone(Section *section, int at, uint64 session)
{
	SampleRow	values = {0};

	values[COL_sample_session] = session;
	values[COL_sample_gone] = 1;
	add_row(section, at, values);
}

static bool
is_held(const Section *section, const HeldRow *last, const SampleRow values)
{
	for (int column = COL_sample_session; column < SAMPLE_COLUMNS; column++)
		if (section_get(section, last->row, column) != values[column])
			return false;
	return true;
}

/* Adds a row of the scan, unless the newest row of its slot is equal. */
static void
put_row(Section *section, int at, SessionScan *scan, const SessionRow *row,
		uint64 session)
{
	HeldRow    *last = &held[row->slot];
	SampleRow	values;

	code_row(row, scan->identities[row->slot].type, session, values);
	if (row->blocked_by >= 0)
		values[COL_sample_blocked_by] =
			processes_session(scan, &scan->rows[row->blocked_by]);
	if (last->session != session || !is_held(section, last, values))
	{
		if (last->session != 0 && last->session != session)
			add_gone(section, at, last->session);
		last->row = section->rows;
		add_row(section, at, values);
	}
	last->session = session;
	last->at = at;
	max_held = Max(max_held, row->slot + 1);
}

/* Ends the rows of sessions that are not in this tick. */
static void
end_rows(Section *section, int at)
{
	for (int slot = 0; slot < max_held; slot++)
		if (held[slot].session != 0 && held[slot].at != at)
		{
			add_gone(section, at, held[slot].session);
			held[slot].session = 0;
		}
}

static void
put_samples(int at, SessionScan *scan, TachoStatus *status)
{
	Section    *section = frame_section(frame, TABLE_sample);

	for (int i = 0; i < scan->row_count; i++)
	{
		SessionRow *row = &scan->rows[i];
		uint64		session = processes_session(scan, row);

		if (session == 0)
			continue;
		put_row(section, at, scan, row, session);
		status->rows_taken++;
	}
	if (at > 0)
		end_rows(section, at);
}

static void
put_counts(int at, const SessionScan *scan)
{
	int			counts[CATEGORIES][SESSION_STATES] = {0};
	Section    *section = frame_section(frame, TABLE_count);

	counts[CATEGORY_FOREGROUND][SESSION_IDLE] = scan->idle_clients;
	for (int i = 0; i < scan->idle_count; i++)
		counts[processes_category(scan, scan->idle[i].slot)]
			[scan->idle[i].state]++;
	for (int i = 0; i < scan->row_count; i++)
		if (!scan->rows[i].only_blocks)
			counts[processes_category(scan, scan->rows[i].slot)]
				[scan->rows[i].state]++;
	for (int category = 0; category < CATEGORIES; category++)
		for (int state = 0; state < SESSION_STATES; state++)
		{
			int			row;

			if (counts[category][state] == 0)
				continue;
			row = section_add(section);
			section_set(section, row, COL_count_at, at);
			section_set(section, row, COL_count_category, category);
			section_set(section, row, COL_count_state, state);
			section_set(section, row, COL_count_backends,
						counts[category][state]);
		}
}

/*
 * Clients choose the names of prepared transactions, so these need room.
 * Names of slots come from the server's owner.
 */
static uint64
horizon_name(const Horizon *horizon)
{
	return horizon->holder == XMIN_HOLDER_PREPARED ?
		given_name_id(horizon->owner, horizon->name) :
		dictionary_text(horizon->name);
}

static void
put_horizon(Section *section, int row, const SessionScan *scan)
{
	uint64		next_xid = compat_next_full_xid();
	Horizon		horizon;

	horizon_find(&horizon, scan, next_xid);
	section_set(section, row, COL_tick_next_xid, next_xid);
	section_set(section, row, COL_tick_oldest_xmin, horizon.oldest);
	section_set(section, row, COL_tick_oldest_xmin_holder, horizon.holder);
	section_set(section, row, COL_tick_oldest_xmin_pid, horizon.pid);
	section_set(section, row, COL_tick_oldest_xmin_name,
				horizon_name(&horizon));
}

static int
put_tick(const SlotTick *due, int interval_ms, UnixMs taken_at,
		 const SessionScan *scan)
{
	Section    *section = frame_section(frame, TABLE_tick);
	int			row = section_add(section);

	section_set(section, row, COL_tick_tick, due->tick);
	section_set(section, row, COL_tick_slot_time,
				frame_time(frame, due->slot_time));
	section_set(section, row, COL_tick_taken_at, frame_time(frame, taken_at));
	section_set(section, row, COL_tick_interval_ms, interval_ms);
	section_set(section, row, COL_tick_elapsed_ms, due->elapsed_ms);
	section_set(section, row, COL_tick_status, due->late ? TICK_LATE : TICK_OK);
	section_set(section, row, COL_tick_connections, scan->clients);
	section_set(section, row, COL_tick_max_connections, MaxConnections);
	section_set(section, row, COL_tick_vcpus_x100, meta_vcpus_x100());
	section_set(section, row, COL_tick_in_recovery, RecoveryInProgress());
	section_set(section, row, COL_tick_rows_failed, scan->rows_failed);
	section_set(section, row, COL_tick_locks_unresolved, locks_unresolved());
	put_horizon(section, row, scan);
	return row;
}

/* Looks up the names that this scan needs and the caches lack. */
static void
resolve_names(const SessionScan *scan)
{
	Oid			database = InvalidOid;
	Oid			user = InvalidOid;
	uint32		wait = 0;

	names_begin();
	for (int i = 0; i < scan->row_count; i++)
	{
		const SessionRow *row = &scan->rows[i];

		if (row->failed)
			continue;
		/* neighbours often have the same names */
		if (row->database != database)
			names_want_database(database = row->database);
		if (row->user != user)
			names_want_role(user = row->user);
		if (row->wait != wait)
			names_want_wait(wait = row->wait);
	}
	names_resolve();
}

/* Never 0, which means "not measured". */
int
recorder_cost_step(int64 cost_us)
{
	return cost_us <= 1 ? 1 : Max(1, (int) rint(4 * log2((double) cost_us)));
}

void
recorder_tick(const SlotTick *due, int interval_ms, int64 wall_us,
			  int64 boot_us, int64 cpu_before, SessionScan *scan,
			  TachoStatus *status)
{
	int			at;
	int64		cost_us;

	text_status = status;
	text_now = due->slot_time;
	open_frame(due->slot_time, boot_us / 1000);
	given_names_now(due->slot_time);
	resolve_names(scan);
	if (first_slot == 0)
		first_slot = due->slot_time;
	last_slot = due->slot_time;
	at = put_tick(due, interval_ms, wall_us / 1000, scan);
	put_samples(at, scan, status);
	locks_put(frame, at, scan);
	put_counts(at, scan);
	cost_us = clock_cpu_us() - cpu_before;
	section_set(frame_section(frame, TABLE_tick), at, COL_tick_cost_step,
				recorder_cost_step(cost_us));
	status->ticks_taken++;
	status->ticks_late += due->late;
	status->ticks_missed += due->missed;
	status->rows_failed += scan->rows_failed;
	status->names_pending = names_pending();
	status->names_over_limit = given_names_left_out();
	if (at + 1 >= TICKS_PER_FRAME)
		recorder_close(status);
}

static void
note_lost_frame(TachoStatus *status)
{
	UnixMs		since = first_slot ? first_slot : frame_base(frame);

	if (lost_frames == 0)
		lost_since = since;
	lost_until = Max(since, last_slot);
	lost_frames++;
	status->frames_lost++;
	/*
	 * its texts are recorded again and must not count twice in the day's
	 * share
	 */
	texts_lost |= text_share_in_frame();
	text_share_lost();
	recorder_relations_forget();
	catalog_record_again();
	dictionary_redefine();
}

void
recorder_close(TachoStatus *status)
{
	uint64		sequence;

	if (!frame_open)
		return;
	frame_open = false;
	if (frame_is_empty(frame))
		return;
	sequence = writer_next_sequence();
	if (frame_encode(frame, FRAME_DATA, incarnation, sequence, &encoded) &&
		writer_put(encoded.data, encoded.len))
	{
		pending_sent(sequence);
		lost_frames = 0;
		settings_due = false;
		ask_for_lost_texts();
	}
	else
	{
		pending_lost();
		note_lost_frame(status);
	}
}

void
recorder_close_before(UnixMs next_slot, TachoStatus *status)
{
	if (first_slot == 0 || next_slot / 1000 != last_slot / 1000)
		recorder_close(status);
}
