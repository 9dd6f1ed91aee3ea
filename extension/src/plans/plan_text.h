/*
 * plan_text.h
 *	  Texts of limited length, without memory of their own.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_TEXT_H
#define TACHO_PLAN_TEXT_H

#define PLAN_TEXT_MOST 200		/* bytes; fits into a byte */

typedef struct PlanText
{
	int			length;
	bool		cut;
	char		bytes[PLAN_TEXT_MOST];
} PlanText;

extern void plan_text_begin(PlanText *text);
extern void plan_text_char(PlanText *text, char c);
extern void plan_text_add(PlanText *text, const char *string);
extern void plan_text_number(PlanText *text, uint64 number);

/* Adds a name, in quotes if SQL needs them. */
extern void plan_text_name(PlanText *text, const char *name);

/* Marks a cut text with three dots at its end. */
extern void plan_text_end(PlanText *text);

#endif							/* TACHO_PLAN_TEXT_H */
