/*
 * derived.h - dimensions that readers compute
 *
 * DERIVED(name, "doc")
 *     a dimension without a column of its own. tape/src/query/rows/derived.rs
 *     says how its keys are found. Arguments and lists have these dimensions
 *     after the columns marked DIM in samples.h.
 *
 * No include guard. Rules: catalog/README.md.
 */
DERIVED(root_blocker, "session at the head of the queue this one waits in")
