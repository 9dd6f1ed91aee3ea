/*
 * plan_text.c
 *	  Texts of limited length, without memory of their own.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "plans/plan_text.h"


void
plan_text_begin(PlanText *text)
{
	text->length = 0;
	text->cut = false;
}

void
plan_text_char(PlanText *text, char c)
{
	if (text->length < PLAN_TEXT_MOST)
		text->bytes[text->length++] = c;
	else
		text->cut = true;
}

void
plan_text_add(PlanText *text, const char *string)
{
	while (*string != '\0' && !text->cut)
		plan_text_char(text, *string++);
}

void
plan_text_number(PlanText *text, uint64 number)
{
	char		digits[24];
	int			length = 0;

	do
		digits[length++] = '0' + number % 10;
	while ((number /= 10) > 0);
	while (length > 0)
		plan_text_char(text, digits[--length]);
}

void
plan_text_end(PlanText *text)
{
	if (!text->cut)
		return;
	text->length -= 3;
	/* not within a character of UTF-8 */
	while (text->length > 0 && (text->bytes[text->length] & 0xC0) == 0x80)
		text->length--;
	memcpy(text->bytes + text->length, "...", 3);
	text->length += 3;
}

void
plan_text_name(PlanText *text, const char *name)
{
	bool		plain = (*name >= 'a' && *name <= 'z') || *name == '_';

	for (const char *c = name; *c != '\0' && plain; c++)
		plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
	if (plain)
	{
		plan_text_add(text, name);
		return;
	}
	plan_text_char(text, '"');
	for (; *name != '\0' && !text->cut; name++)
	{
		if (*name == '"')
			plan_text_char(text, '"');
		plan_text_char(text, *name);
	}
	plan_text_char(text, '"');
}
