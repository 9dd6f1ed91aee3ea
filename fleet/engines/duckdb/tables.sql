-- The columns that questions need, by table of the lake. What is read is united with
-- these: a lake without a table answers as one without rows, and files that do not have
-- a column yet as if it was null.
create table empty_sample_runs (
  server varchar, node varchar, hour timestamptz, first_slot timestamptz, ticks bigint,
  interval_ms bigint, weight_ms bigint, scope varchar, wait_event varchar, pid bigint,
  backend_type varchar, category varchar, database varchar, username varchar,
  application varchar, client_addr varchar, leader_pid bigint, state varchar,
  query_id bigint, plan_id bigint, blocked_by bigint);
create table empty_ticks (
  server varchar, node varchar, hour timestamptz, slot_time timestamptz, interval_ms bigint,
  tick_status varchar, vcpus decimal(18, 2), weight_ms bigint);
create table empty_load_minute (
  server varchar, node varchar, hour timestamptz, minute timestamptz, wait_class varchar,
  wait_event varchar, samples bigint, weight_ms bigint, observed_ms bigint);
create table empty_texts (
  server varchar, node varchar, hour timestamptz, query_id bigint, fingerprint bigint,
  database varchar, username varchar, query_text varchar, length bigint);
create table empty_servers (
  server varchar, node varchar, hour timestamptz, generation bigint, server_name varchar,
  system_identifier varchar, host varchar, labels varchar, "rows" varchar, damage varchar,
  shipper varchar, timeline bigint, postmaster_start timestamptz);
