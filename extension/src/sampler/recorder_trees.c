/*
 * recorder_trees.c
 *	  Records the trees of plans that backends have put into the ring, and
 *	  the names of relations in them.
 *
 * A tree has the rights of a text: its row names the role that executed the
 * plan. Another role may have the same plan of the same query, with conditions
 * of other row-level security policies. So each role has its own tree.
 *
 * The reasons for which plans have no tree are recorded without a role, once a
 * day for each plan and reason.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "history/day_set.h"
#include "history/dictionary.h"
#include "history/text_share.h"
#include "sampler/processes.h"
#include "sampler/recorder_relations.h"
#include "sampler/recorder_trees.h"
#include "sampler/tree_analyzed.h"
#include "statements/plan_trees.h"

#define LEFT_OUT_EACH_MS	1000
#define MOST_LEFT_OUT		10000	/* rows a day */

/* plans without a tree that today's history has, with their reasons */
static DaySet left_out;
static int	left_out_rows;
static UnixMs looked_at = 0;
static UnixMs left_out_at = 0;
static Frame *left_out_frame;

static bool over_limit = false;	/* a tree found no room in its share */

static void
put_left_out(int64 plan_id, TreeLeftOut reason)
{
	Section    *section;
	int			row;

	/* the product spreads ids: with their reasons they stay apart */
	if (left_out_rows >= MOST_LEFT_OUT ||
		!day_set_add(&left_out, (uint64) plan_id * UINT64CONST(0x9E3779B97F4A7C15) + reason))
		return;
	left_out_rows++;
	section = frame_section(left_out_frame, TABLE_tree_left_out);
	row = section_add(section);
	section_set(section, row, COL_tree_left_out_time, frame_time(left_out_frame, left_out_at));
	section_set(section, row, COL_tree_left_out_plan_id, frame_int(plan_id));
	section_set(section, row, COL_tree_left_out_reason, reason);
}

void
recorder_put_tree(Frame *frame, const QueryText *tree, UnixMs now)
{
	uint64		database = dictionary_use_name(processes_database_name(tree->database));
	uint64		role = dictionary_use_name(processes_role_name(tree->user));
	TextKind	kind = tree->has_actuals ? TEXT_OF_ACTUALS : TEXT_OF_PLAN;
	Section    *section;
	bool		first;
	int			row;

	if (text_share_take(kind, tree->database, tree->user,
						(uint64) tree->plan_id ^ (uint64) tree->query_id, tree->length,
						&first) == 0)
	{
		over_limit = true;
		query_text_share_used(kind, tree->database, tree->user);
		left_out_at = now;
		left_out_frame = frame;
		if (!tree->has_actuals)
			put_left_out(tree->plan_id, TREE_SHARE_OF_DAY);
		return;
	}
	/* names take fewer bytes than their tree, so the share of trees limits them */
	recorder_put_relations(frame, tree, now);
	section = frame_section(frame, TABLE_plan_tree);
	row = section_add(section);
	section_set(section, row, COL_plan_tree_time, frame_time(frame, now));
	section_set(section, row, COL_plan_tree_plan_id, frame_int(tree->plan_id));
	section_set(section, row, COL_plan_tree_query_id, frame_int(tree->query_id));
	section_set(section, row, COL_plan_tree_database, database);
	section_set(section, row, COL_plan_tree_username, role);
	section_set(section, row, COL_plan_tree_user_oid, tree->user);
	section_set(section, row, COL_plan_tree_encoding, tree->encoding);
	section_set_bytes(section, COL_plan_tree_tree, tree_analyzed(tree), tree->length);
}

void
recorder_trees_init(void)
{
	day_set_init(&left_out);
}

void
recorder_trees_day(void)
{
	day_set_clear(&left_out);
	left_out_rows = 0;
	plan_trees_forget_left_out();
}

bool
recorder_trees_over_limit(void)
{
	return over_limit;
}

void
recorder_trees_left_out(Frame *frame, UnixMs now)
{
	if (now >= looked_at && now - looked_at < LEFT_OUT_EACH_MS)
		return;
	looked_at = left_out_at = now;
	left_out_frame = frame;
	plan_trees_left_out(put_left_out);
}
