/*
 * tacho.sql - installs the SQL edition into schema tacho
 *
 *     psql -f sql/tacho.sql            or   \i sql/tacho.sql
 *
 * No superuser, extension or restart: the role needs CREATE on the database,
 * and membership in pg_monitor to see what other roles' sessions do. Everything
 * happens in one transaction. `make -C sql dist` writes the same as one file.
 *
 * The parts in their order; each may use only what stands before it when it is
 * created, and anything when it is called.
 */
\set ON_ERROR_STOP on
-- upgrade.sql has begun already
\if :{?upgrading}
\else
begin read write;
\endif
set local client_min_messages = warning;
set local search_path = pg_catalog;

\ir src/00_schema.sql
\ir src/05_dimensions.sql
\ir src/10_settings.sql
\ir src/12_texts.sql
\ir src/15_hot.sql
\ir src/18_locks.sql
\ir src/20_store.sql
\ir src/22_import.sql
\ir src/25_sampler.sql
\ir src/30_pack.sql
\ir src/40_arguments.sql
\ir src/42_filters.sql
\ir src/44_cells.sql
\ir src/45_plan.sql
\ir src/46_measures.sql
\ir src/50_readers.sql
\ir src/51_ranking.sql
\ir src/52_timeline.sql
\ir src/53_compare.sql
\ir src/54_chart.sql
\ir src/55_explain.sql
\ir src/56_samples.sql
\ir src/57_sessions.sql
\ir src/58_blocking.sql
\ir src/59_report.sql
\ir src/59_compat.sql
\ir src/60_rollup.sql
\ir src/61_clock.sql
\ir src/62_ring.sql
\ir src/64_statements.sql
\ir src/65_server.sql
\ir src/66_schedule.sql
\ir src/68_status.sql
\ir src/70_export.sql
\ir src/90_rights.sql

\if :{?upgrading}
\else
commit;
\echo 'tacho: installed in schema tacho. Next: select * from tacho.start();'
\endif
