-- The columns that questions need, by table of the lake. The rows of the lake are
-- united with these empty tables. So a lake without a table answers like one without
-- rows, and a column that files do not have yet is null.
create table empty_sample_runs (
  server varchar, node varchar, hour timestamptz, generation bigint, first_slot timestamptz, ticks bigint,
  interval_ms bigint, weight_ms bigint, scope varchar, wait_event varchar, pid bigint,
  backend_type varchar, category varchar, database varchar, username varchar,
  application varchar, client_addr varchar, leader_pid bigint, state varchar,
  query_id bigint, plan_id bigint, blocked_by bigint, tags varchar);
create table empty_ticks (
  server varchar, node varchar, hour timestamptz, generation bigint, slot_time timestamptz, interval_ms bigint,
  tick_status varchar, vcpus decimal(18, 2), weight_ms bigint);
create table empty_load_minute (
  server varchar, node varchar, hour timestamptz, generation bigint, minute timestamptz, wait_class varchar,
  wait_event varchar, samples bigint, weight_ms bigint, observed_ms bigint);
create table empty_texts (
  server varchar, node varchar, hour timestamptz, generation bigint, query_id bigint, fingerprint bigint,
  database varchar, username varchar, query_text varchar, length bigint);
create table empty_locks (
  server varchar, node varchar, hour timestamptz, generation bigint, time timestamptz, tick bigint,
  waiter bigint, waiter_start timestamptz, blocker bigint, blocker_start timestamptz,
  blocker_xid bigint, blocker_gid varchar, hard bigint, locktype varchar, lock_database bigint,
  field1 bigint, field2 bigint, field3 bigint, modes_held bigint, mode_requested bigint,
  wait_start timestamptz);
create table empty_markers (
  server varchar, node varchar, hour timestamptz, generation bigint, time timestamptz, kind varchar,
  since timestamptz, until timestamptz, detail varchar, command varchar, object_class varchar,
  object_oid bigint, object_name varchar, database varchar, username varchar, application varchar,
  client_addr varchar, old_value varchar, new_value varchar, outcome varchar, left_out bigint);
create table empty_server (
  server varchar, node varchar, hour timestamptz, generation bigint, metric varchar,
  object varchar, time timestamptz, kind varchar, unit varchar, value bigint, elapsed_ms bigint);
create table empty_servers (
  server varchar, node varchar, hour timestamptz, generation bigint, server_name varchar,
  system_identifier varchar, host varchar, labels varchar, "rows" varchar, damage varchar,
  shipper varchar, timeline bigint, postmaster_start timestamptz);
create table empty_statements (
  server varchar, node varchar, hour timestamptz, generation bigint, time timestamptz, elapsed_ms bigint,
  username varchar, database varchar, query_id bigint, toplevel bigint, plans bigint,
  total_plan_time_ms decimal(18, 2), square_plan_time_ms2 decimal(18, 2), calls bigint,
  total_exec_time_ms decimal(18, 2), square_exec_time_ms2 decimal(18, 2), rows bigint,
  shared_blks_hit bigint, shared_blks_read bigint, shared_blks_dirtied bigint,
  shared_blks_written bigint, local_blks_hit bigint, local_blks_read bigint,
  local_blks_dirtied bigint, local_blks_written bigint, temp_blks_read bigint,
  temp_blks_written bigint, shared_blk_read_time_ms decimal(18, 2),
  shared_blk_write_time_ms decimal(18, 2), local_blk_read_time_ms decimal(18, 2),
  local_blk_write_time_ms decimal(18, 2), temp_blk_read_time_ms decimal(18, 2),
  temp_blk_write_time_ms decimal(18, 2), wal_records bigint, wal_fpi bigint,
  wal_bytes bigint, wal_buffers_full bigint, jit_functions bigint,
  jit_generation_time_ms decimal(18, 2), jit_inlining_count bigint,
  jit_inlining_time_ms decimal(18, 2), jit_optimization_count bigint,
  jit_optimization_time_ms decimal(18, 2), jit_emission_count bigint,
  jit_emission_time_ms decimal(18, 2), jit_deform_count bigint,
  jit_deform_time_ms decimal(18, 2), parallel_workers_to_launch bigint,
  parallel_workers_launched bigint, generic_plan_calls bigint, custom_plan_calls bigint,
  user_time_ms decimal(18, 2), system_time_ms decimal(18, 2),
  run_queue_time_ms decimal(18, 2), read_bytes bigint, written_bytes bigint,
  minor_faults bigint, major_faults bigint, voluntary_switches bigint,
  involuntary_switches bigint, n_sampled bigint, errors bigint, cancellations bigint,
  histogram_0 bigint, histogram_1 bigint, histogram_2 bigint, histogram_3 bigint,
  histogram_4 bigint, histogram_5 bigint, histogram_6 bigint, histogram_7 bigint,
  histogram_8 bigint, histogram_9 bigint, histogram_10 bigint, histogram_11 bigint,
  histogram_12 bigint, histogram_13 bigint, histogram_14 bigint, histogram_15 bigint,
  histogram_16 bigint, histogram_17 bigint, histogram_18 bigint, histogram_19 bigint,
  histogram_20 bigint, histogram_21 bigint, histogram_22 bigint, histogram_23 bigint,
  histogram_long_0 bigint, histogram_long_1 bigint, histogram_long_2 bigint,
  histogram_long_3 bigint, histogram_long_4 bigint, histogram_long_5 bigint,
  histogram_long_6 bigint, histogram_long_7 bigint, histogram_long_8 bigint,
  histogram_long_9 bigint, histogram_long_10 bigint, histogram_long_11 bigint,
  sampled_exec_time_ms decimal(18, 2), failed_exec_time_ms decimal(18, 2),
  failed_cpu_time_ms decimal(18, 2), failed_shared_blks_hit bigint, failed_shared_blks_read bigint,
  failed_shared_blks_dirtied bigint, failed_shared_blks_written bigint,
  failed_local_blks_hit bigint, failed_local_blks_read bigint, failed_local_blks_dirtied bigint,
  failed_local_blks_written bigint, failed_temp_blks_read bigint, failed_temp_blks_written bigint,
  failed_wal_records bigint, failed_wal_bytes bigint,
  fingerprint bigint);
