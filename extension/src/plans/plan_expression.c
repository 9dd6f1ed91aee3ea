/*
 * plan_expression.c
 *	  Prints conditions and keys of plans, without any value.
 *
 * The server's printer (ruleutils.c) looks up names in catalogs, so it may
 * raise errors and wait for locks. It also prints constants. This printer
 * knows a list of kinds of expressions, and prints any other kind as a word in
 * brackets. Names of columns come from relations that the executor has open.
 * Casts that the user has not written are left out.
 *
 * A Var above a join or a subquery has the number of an output column of the
 * node below it. The printer follows these numbers down to a table's column.
 * A deep plan could make that slow, so PlanNames.steps limits the number of
 * columns that are visited for a whole plan.
 *
 * Example: "((o.customer_id = c.id) AND (o.total > ?))".
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

#include "core/compat.h"
#include "plans/plan_expression.h"
#include "plans/plan_names.h"

static void expression(PlanText *text, PlanNames *names, const PlanNode *node,
					   const Node *expr);

/* --- names */

/* Adds a name of PostgreSQL itself, or for another object its kind and OID. */
static void
add_object(PlanText *text, const char *builtin, const char *kind, Oid oid)
{
	if (builtin != NULL)
	{
		plan_text_add(text, builtin);
		return;
	}
	plan_text_add(text, kind);
	plan_text_char(text, '(');
	plan_text_number(text, oid);
	plan_text_char(text, ')');
}

static inline void
add_function(PlanText *text, Oid function)
{
	add_object(text, builtin_function(function), "function", function);
}

static inline void
add_operator(PlanText *text, Oid operator)
{
	add_object(text, builtin_operator(operator), "op", operator);
}

static inline void
add_type(PlanText *text, Oid type)
{
	add_object(text, builtin_type(type), "type", type);
}

/* --- columns */

static void
add_var(PlanText *text, PlanNames *names, const PlanNode *node, const Var *var)
{
	const Node *expr = (const Node *) var;
	PlanNode	at = {.plan = node->plan, .above = node->above, .use = node->use};

	/* usually a column is passed on by several nodes */
	while (expr != NULL && IsA(expr, Var) && plan_is_special((const Var *) expr) &&
		   --names->steps > 0)
	{
		const Plan *below;

		expr = plan_behind(names, at.plan, (const Var *) expr, &below);
		at.plan = below;
	}
	if (expr == NULL || names->steps <= 0)
		plan_text_add(text, "(column)");
	else if (IsA(expr, Var))
		plan_text_column(text, names, (const Var *) expr);
	else
	{
		/* the text around it takes it for a column */
		plan_text_char(text, '(');
		expression(text, names, &at, expr);
		plan_text_char(text, ')');
	}
}

/* --- parameters */

/* The column of the outer side that a nested loop puts into the parameter. */
static const Node *
loop_value(const Plan *plan, const Plan *child, int number)
{
	ListCell   *cell;

	if (!IsA(plan, NestLoop) || plan->righttree != child)
		return NULL;
	foreach(cell, ((const NestLoop *) plan)->nestParams)
	{
		const NestLoopParam *param = lfirst(cell);

		if (param->paramno == number)
			return (const Node *) param->paramval;
	}
	return NULL;
}

/* The argument of a subplan that has this parameter. */
static const Node *
subplan_value(const SubPlan *use, int number)
{
	ListCell   *param;
	ListCell   *argument;

	forboth(param, use->parParam, argument, use->args)
		if (lfirst_int(param) == number)
			return lfirst(argument);
	return NULL;
}

/* Adds an expression that has columns of other relations than the node's. */
static void
with_prefix(PlanText *text, PlanNames *names, const PlanNode *node, const Node *expr)
{
	bool		prefix = names->prefix;

	names->prefix = true;
	expression(text, names, node, expr);
	names->prefix = prefix;
}

/*
 * The place of a parameter among the results of an init plan, from 1 on; 0 if
 * it is none of them.
 */
static int
place_of_result(const SubPlan *use, int number)
{
	int			place = 0;
	ListCell   *cell;

	foreach(cell, use->setParam)
	{
		place++;
		if (lfirst_int(cell) == number)
			return place;
	}
	return 0;
}

/*
 * Adds "(InitPlan 1).col1" if the parameter is a result of an init plan. Up to
 * 16 the name of an init plan has its parameters, as "(returns $0)"; then the
 * parameter is $0.
 */
static bool
add_result(PlanText *text, const PlanNode *node, const Param *param)
{
	ListCell   *cell;

	foreach(cell, node->plan->initPlan)
	{
		const SubPlan *use = lfirst(cell);
		int			place = IsA(use, SubPlan) ? place_of_result(use, param->paramid) : 0;

		if (place == 0 || use->plan_name == NULL || strchr(use->plan_name, '$') != NULL)
			continue;
		plan_text_char(text, '(');
		plan_text_add(text, compat_subplan_word(use));
		plan_text_add(text, use->plan_name);
		plan_text_add(text, ").col");
		plan_text_number(text, place);
		return true;
	}
	return false;
}

/*
 * A parameter whose value comes from a node above is printed as the column
 * that it has there. Others are $1, as in the server's EXPLAIN.
 */
static void
add_param(PlanText *text, PlanNames *names, const PlanNode *node, const Param *param)
{
	const PlanNode *from = node;

	names->has_parameter |= param->paramkind == PARAM_EXTERN;
	for (; param->paramkind == PARAM_EXEC && --names->steps > 0; from = from->above)
	{
		const Node *value;

		if (add_result(text, from, param))
			return;
		if (from->above == NULL)
			break;
		value = from->use ? subplan_value(from->use, param->paramid)
			: loop_value(from->above->plan, from->plan, param->paramid);
		if (value == NULL)
			continue;
		with_prefix(text, names, from->above, value);
		return;
	}
	plan_text_char(text, '$');
	plan_text_number(text, param->paramid);
}

/* --- expressions */

static void
add_list(PlanText *text, PlanNames *names, const PlanNode *node,
		 const List *expressions, const char *between)
{
	ListCell   *cell;

	foreach(cell, expressions)
	{
		const Node *each = lfirst(cell);

		if (text->cut)
			return;
		if (cell != list_head(expressions))
			plan_text_add(text, between);
		if (each != NULL && IsA(each, TargetEntry))
			each = (const Node *) ((const TargetEntry *) each)->expr;
		expression(text, names, node, each);
	}
}

static void
add_brackets(PlanText *text, PlanNames *names, const PlanNode *node,
			 const List *expressions, const char *between)
{
	plan_text_char(text, '(');
	add_list(text, names, node, expressions, between);
	plan_text_char(text, ')');
}

static void
add_call(PlanText *text, PlanNames *names, const PlanNode *node, Oid function,
		 const List *arguments, bool star)
{
	add_function(text, function);
	if (star)
		plan_text_add(text, "(*)");
	else
		add_brackets(text, names, node, arguments, ", ");
}

static void
add_cast(PlanText *text, PlanNames *names, const PlanNode *node, const Node *argument,
		 CoercionForm form, Oid type)
{
	if (form == COERCE_IMPLICIT_CAST)
	{
		expression(text, names, node, argument);
		return;
	}
	plan_text_char(text, '(');
	expression(text, names, node, argument);
	plan_text_add(text, ")::");
	add_type(text, type);
}

static void
add_func(PlanText *text, PlanNames *names, const PlanNode *node, const FuncExpr *call)
{
	bool		casts = call->funcformat == COERCE_IMPLICIT_CAST ||
		call->funcformat == COERCE_EXPLICIT_CAST;

	/* further arguments of a cast are the length of its type */
	if (casts && call->args != NIL)
		add_cast(text, names, node, linitial(call->args), call->funcformat,
				 call->funcresulttype);
	else
		add_call(text, names, node, call->funcid, call->args, false);
}

/*
 * Adds an operator with its arguments: "a = b", "a IS DISTINCT FROM b", "-a".
 */
static void
add_op(PlanText *text, PlanNames *names, const PlanNode *node, const OpExpr *op)
{
	const Node *last = op->args == NIL ? NULL : llast(op->args);

	plan_text_char(text, '(');
	if (list_length(op->args) > 1)
	{
		expression(text, names, node, linitial(op->args));
		plan_text_char(text, ' ');
	}
	if (IsA(op, DistinctExpr))
		plan_text_add(text, "IS DISTINCT FROM");
	else
		add_operator(text, op->opno);
	plan_text_char(text, ' ');
	expression(text, names, node, last);
	plan_text_char(text, ')');
}

static void
add_array_op(PlanText *text, PlanNames *names, const PlanNode *node,
			 const ScalarArrayOpExpr *op)
{
	if (list_length(op->args) != 2)
		return;
	plan_text_char(text, '(');
	expression(text, names, node, linitial(op->args));
	plan_text_char(text, ' ');
	add_operator(text, op->opno);
	plan_text_add(text, op->useOr ? " ANY (" : " ALL (");
	expression(text, names, node, lsecond(op->args));
	plan_text_add(text, "))");
}

static void
add_bool(PlanText *text, PlanNames *names, const PlanNode *node, const BoolExpr *expr)
{
	if (expr->boolop != NOT_EXPR)
	{
		add_brackets(text, names, node, expr->args,
					 expr->boolop == AND_EXPR ? " AND " : " OR ");
		return;
	}
	plan_text_add(text, "(NOT ");
	add_list(text, names, node, expr->args, " ");
	plan_text_char(text, ')');
}

static const char *
boolean_test(BoolTestType type)
{
	switch (type)
	{
		case IS_TRUE:
			return " IS TRUE)";
		case IS_NOT_TRUE:
			return " IS NOT TRUE)";
		case IS_FALSE:
			return " IS FALSE)";
		case IS_NOT_FALSE:
			return " IS NOT FALSE)";
		case IS_UNKNOWN:
			return " IS UNKNOWN)";
		case IS_NOT_UNKNOWN:
			return " IS NOT UNKNOWN)";
	}
	return ")";
}

static void
add_test(PlanText *text, PlanNames *names, const PlanNode *node, const Expr *argument,
		 const char *test)
{
	plan_text_char(text, '(');
	expression(text, names, node, (const Node *) argument);
	plan_text_add(text, test);
}

static void
add_row_compare(PlanText *text, PlanNames *names, const PlanNode *node,
				const RowCompareExpr *expr)
{
	plan_text_add(text, "(ROW");
	add_brackets(text, names, node, expr->largs, ", ");
	plan_text_char(text, ' ');
	add_operator(text, expr->opnos == NIL ? InvalidOid : linitial_oid(expr->opnos));
	plan_text_add(text, " ROW");
	add_brackets(text, names, node, expr->rargs, ", ");
	plan_text_char(text, ')');
}

static void
add_case(PlanText *text, PlanNames *names, const PlanNode *node, const CaseExpr *expr)
{
	ListCell   *cell;

	plan_text_add(text, "CASE");
	if (expr->arg != NULL)
	{
		plan_text_char(text, ' ');
		expression(text, names, node, (const Node *) expr->arg);
	}
	foreach(cell, expr->args)
	{
		const CaseWhen *when = lfirst(cell);

		if (text->cut)
			return;
		plan_text_add(text, " WHEN ");
		expression(text, names, node, (const Node *) when->expr);
		plan_text_add(text, " THEN ");
		expression(text, names, node, (const Node *) when->result);
	}
	if (expr->defresult != NULL)
	{
		plan_text_add(text, " ELSE ");
		expression(text, names, node, (const Node *) expr->defresult);
	}
	plan_text_add(text, " END");
}

static void
add_subplan(PlanText *text, const SubPlan *use)
{
	plan_text_add(text, use->useHashTable ? "(hashed " : "(");
	plan_text_add(text, compat_subplan_word(use));
	plan_text_add(text, use->plan_name ? use->plan_name : "SubPlan");
	plan_text_char(text, ')');
}

/* Kinds of expressions that have one argument that matters. */
static bool
add_wrapper(PlanText *text, PlanNames *names, const PlanNode *node, const Node *expr)
{
	switch (nodeTag(expr))
	{
		case T_RelabelType:
			{
				const RelabelType *cast = (const RelabelType *) expr;

				add_cast(text, names, node, (const Node *) cast->arg,
						 cast->relabelformat, cast->resulttype);
				return true;
			}
		case T_CoerceViaIO:
			{
				const CoerceViaIO *cast = (const CoerceViaIO *) expr;

				add_cast(text, names, node, (const Node *) cast->arg,
						 cast->coerceformat, cast->resulttype);
				return true;
			}
		case T_ArrayCoerceExpr:
			{
				const ArrayCoerceExpr *cast = (const ArrayCoerceExpr *) expr;

				add_cast(text, names, node, (const Node *) cast->arg,
						 cast->coerceformat, cast->resulttype);
				return true;
			}
		case T_CoerceToDomain:
			{
				const CoerceToDomain *cast = (const CoerceToDomain *) expr;

				add_cast(text, names, node, (const Node *) cast->arg,
						 cast->coercionformat, cast->resulttype);
				return true;
			}
		case T_CollateExpr:
			expression(text, names, node, (const Node *) ((const CollateExpr *) expr)->arg);
			return true;
		case T_NamedArgExpr:
			expression(text, names, node, (const Node *) ((const NamedArgExpr *) expr)->arg);
			return true;
		case T_NullTest:
			add_test(text, names, node, ((const NullTest *) expr)->arg,
					 ((const NullTest *) expr)->nulltesttype == IS_NULL ? " IS NULL)" : " IS NOT NULL)");
			return true;
		case T_BooleanTest:
			add_test(text, names, node, ((const BooleanTest *) expr)->arg,
					 boolean_test(((const BooleanTest *) expr)->booltesttype));
			return true;
		default:
			return false;
	}
}

/* Kinds of expressions that have a list of arguments. */
static bool
add_arguments(PlanText *text, PlanNames *names, const PlanNode *node, const Node *expr)
{
	switch (nodeTag(expr))
	{
		case T_Aggref:
			/* the upper half of an aggregate in two steps has the lower half */
			if (DO_AGGSPLIT_COMBINE(((const Aggref *) expr)->aggsplit))
				add_list(text, names, node, ((const Aggref *) expr)->args, ", ");
			else
				add_call(text, names, node, ((const Aggref *) expr)->aggfnoid,
						 ((const Aggref *) expr)->args, ((const Aggref *) expr)->aggstar);
			return true;
		case T_WindowFunc:
			add_call(text, names, node, ((const WindowFunc *) expr)->winfnoid,
					 ((const WindowFunc *) expr)->args, ((const WindowFunc *) expr)->winstar);
			plan_text_add(text, " OVER (?)");
			return true;
		case T_CoalesceExpr:
			plan_text_add(text, "COALESCE");
			add_brackets(text, names, node, ((const CoalesceExpr *) expr)->args, ", ");
			return true;
		case T_MinMaxExpr:
			plan_text_add(text, ((const MinMaxExpr *) expr)->op == IS_GREATEST ? "GREATEST" : "LEAST");
			add_brackets(text, names, node, ((const MinMaxExpr *) expr)->args, ", ");
			return true;
		case T_NullIfExpr:
			plan_text_add(text, "NULLIF");
			add_brackets(text, names, node, ((const NullIfExpr *) expr)->args, ", ");
			return true;
		case T_ArrayExpr:
			plan_text_add(text, "ARRAY[");
			add_list(text, names, node, ((const ArrayExpr *) expr)->elements, ", ");
			plan_text_char(text, ']');
			return true;
		case T_RowExpr:
			plan_text_add(text, "ROW");
			add_brackets(text, names, node, ((const RowExpr *) expr)->args, ", ");
			return true;
		default:
			return false;
	}
}

static void
known_expression(PlanText *text, PlanNames *names, const PlanNode *node, const Node *expr)
{
	switch (nodeTag(expr))
	{
		case T_Const:
			plan_text_char(text, '?');
			break;
		case T_Var:
			add_var(text, names, node, (const Var *) expr);
			break;
		case T_Param:
			add_param(text, names, node, (const Param *) expr);
			break;
		case T_OpExpr:
		case T_DistinctExpr:
			add_op(text, names, node, (const OpExpr *) expr);
			break;
		case T_FuncExpr:
			add_func(text, names, node, (const FuncExpr *) expr);
			break;
		case T_ScalarArrayOpExpr:
			add_array_op(text, names, node, (const ScalarArrayOpExpr *) expr);
			break;
		case T_BoolExpr:
			add_bool(text, names, node, (const BoolExpr *) expr);
			break;
		case T_RowCompareExpr:
			add_row_compare(text, names, node, (const RowCompareExpr *) expr);
			break;
		case T_CaseExpr:
			add_case(text, names, node, (const CaseExpr *) expr);
			break;
		case T_SubPlan:
			add_subplan(text, (const SubPlan *) expr);
			break;
		case T_CurrentOfExpr:
			plan_text_add(text, "CURRENT OF ?");
			break;
		default:
			plan_text_add(text, "(expression)");
	}
}

static void
expression(PlanText *text, PlanNames *names, const PlanNode *node, const Node *expr)
{
	if (text->cut)
		return;
	if (expr == NULL || --names->steps <= 0 || stack_is_too_deep())
		plan_text_add(text, "(expression)");
	else if (!add_wrapper(text, names, node, expr) &&
			 !add_arguments(text, names, node, expr))
		known_expression(text, names, node, expr);
}

void
plan_text_expression(PlanText *text, PlanNames *names, const PlanNode *node,
					 const Node *expr)
{
	expression(text, names, node, expr);
}

void
plan_text_list(PlanText *text, PlanNames *names, const PlanNode *node,
			   const List *expressions)
{
	add_list(text, names, node, expressions, ", ");
}

void
plan_text_conditions(PlanText *text, PlanNames *names, const PlanNode *node,
					 const List *conditions, const char *word)
{
	if (list_length(conditions) == 1)
		expression(text, names, node, linitial(conditions));
	else
		add_brackets(text, names, node, conditions, word);
}

/* The order of a key: DESC, and NULLS where they are not by default. */
static void
add_order(PlanText *text, Oid operator, bool nulls_first)
{
	const char *name = builtin_operator(operator);
	bool		descends = name != NULL && name[0] == '>';

	if (descends)
		plan_text_add(text, " DESC");
	if (nulls_first != descends)
		plan_text_add(text, nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

void
plan_text_columns(PlanText *text, PlanNames *names, const PlanNode *node, int count,
				  const AttrNumber *columns, const Oid *operators,
				  const bool *nulls_first)
{
	for (int i = 0; i < count && !text->cut; i++)
	{
		const TargetEntry *entry = plan_output_column(names, node->plan->targetlist, columns[i]);

		if (i > 0)
			plan_text_add(text, ", ");
		expression(text, names, node, entry ? (const Node *) entry->expr : NULL);
		if (operators != NULL)
			add_order(text, operators[i], nulls_first[i]);
	}
}
