/*
 * message_tags.h
 *	  Hooks that see the messages of a client, for their tags.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_MESSAGE_TAGS_H
#define TACHO_MESSAGE_TAGS_H

/* Hooks into analysis, planner and commands; after the hooks of hooks.c. */
extern void message_tags_install(void);

#endif							/* TACHO_MESSAGE_TAGS_H */
