/*
 * recorder_trees.c
 *	  Records the trees of plans that backends have put into the ring, and
 *	  the names of relations in them.
 *
 * A tree has the rights of a text: its row names the role that executed the
 * plan. Another role may have the same plan of the same query, with conditions
 * of other row-level security policies. So each role has its own tree.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "history/dictionary.h"
#include "history/text_share.h"
#include "sampler/processes.h"
#include "sampler/recorder_relations.h"
#include "sampler/recorder_trees.h"

void
recorder_put_tree(Frame *frame, const QueryText *tree, UnixMs now)
{
	uint64		database = dictionary_use_name(processes_database_name(tree->database));
	uint64		role = dictionary_use_name(processes_role_name(tree->user));
	Section    *section;
	bool		first;
	int			row;

	if (text_share_take(TEXT_OF_PLAN, tree->database, tree->user,
						(uint64) tree->plan_id ^ (uint64) tree->query_id, tree->length,
						&first) == 0)
	{
		query_text_share_used(TEXT_OF_PLAN, tree->database, tree->user);
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
	section_set_bytes(section, COL_plan_tree_tree, tree->bytes, tree->length);
}
