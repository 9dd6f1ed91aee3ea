-- Views and questions for users who query the tables in an engine's own SQL; `tacho fleet
-- views` prints them in it. A question covers the time from `since` until before `until`. It
-- adds up quotients in floating point: `tacho fleet top` and its like are exact. micros() and
-- hour_before() are replaced by the engine's own form.

-- view fleet_hours: the generation that counts, for each hour of a node
select server, node, hour, max(generation) as generation
from tables.servers group by server, node, hour

-- view fleet_minutes: load by wait event in each minute, and the observed time of the minute
select m.server, m.minute, m.wait_class as wait_event_type,
  m.wait_event, m.weight_ms as load_ms, m.observed_ms
from tables.load_minute as m join fleet_hours as h
  on m.server = h.server and m.node = h.node and m.hour = h.hour and m.generation = h.generation

-- view fleet_samples: runs of samples that are load, a sample each interval_ms from first_us on
select r.server, r.hour, micros(r.first_slot) as first_us, r.ticks, r.interval_ms, r.pid,
  r.backend_type, r.database, r.username, r.application, r.client_addr, r.state, r.wait_event,
  r.query_id, r.plan_id, r.blocked_by
from tables.sample_runs as r join fleet_hours as h
  on r.server = h.server and r.node = h.node and r.hour = h.hour and r.generation = h.generation
where r.weight_ms > 0 and r.scope = 'load'

-- view fleet_statements: counters of statements; the middle of a row lies in its hour
select s.server, s.hour, micros(s.time) - s.elapsed_ms * 500 as middle_us, s.database, s.username,
  s.query_id, s.fingerprint, s.toplevel, s.calls, s.total_exec_time_ms, s.rows,
  s.shared_blks_hit, s.shared_blks_read, s.user_time_ms, s.system_time_ms, s.errors,
  s.histogram_0, s.histogram_1, s.histogram_2, s.histogram_3, s.histogram_4, s.histogram_5,
  s.histogram_6, s.histogram_7, s.histogram_8, s.histogram_9, s.histogram_10, s.histogram_11,
  s.histogram_12, s.histogram_13, s.histogram_14, s.histogram_15, s.histogram_16,
  s.histogram_17, s.histogram_18, s.histogram_19, s.histogram_20, s.histogram_21,
  s.histogram_22, s.histogram_23
from tables.statements as s join fleet_hours as h
  on s.server = h.server and s.node = h.node and s.hour = h.hour and s.generation = h.generation
where s.toplevel is not null

-- view fleet_texts: a text for each fingerprint, which a query has on every server
select fingerprint, min(query_text) as query_text
from tables.texts where fingerprint is not null group by fingerprint

-- question fleet_top: waits of the servers; a server's load is the average over its observed time.
-- The load of the fleet is the sum over its servers
with cells as (
  select server, wait_event_type, wait_event, sum(load_ms) as load_ms,
    sum(observed_ms) as observed_ms
  from fleet_minutes where minute >= since and minute < until
  group by server, wait_event_type, wait_event
), shares as (
  select wait_event_type, wait_event, load_ms,
    load_ms * 1e0 / sum(observed_ms) over (partition by server) as aas
  from cells
), lines as (
  select wait_event_type, wait_event, sum(aas) as avg_aas, sum(load_ms) / 1e3 as backend_seconds
  from shares where load_ms > 0 group by wait_event_type, wait_event
)
select wait_event_type, wait_event, avg_aas, backend_seconds,
  100 * avg_aas / sum(avg_aas) over () as pct
from lines order by avg_aas desc, wait_event

-- question fleet_load: load and coverage of each server
select server, coalesce(sum(load_ms), 0) * 1e0 / sum(observed_ms) as avg_aas,
  sum(observed_ms) * 1e5 / (micros(until) - micros(since)) as coverage_pct
from fleet_minutes where minute >= since and minute < until
group by server order by avg_aas desc, server

-- question fleet_timeline: load of the fleet in each minute, and how many servers were observed
with cells as (
  select server, minute, sum(load_ms) as load_ms, sum(observed_ms) as observed_ms
  from fleet_minutes where minute >= since and minute < until group by server, minute
)
select minute, sum(coalesce(load_ms, 0) * 1e0 / observed_ms) as aas, count(*) as servers
from cells where observed_ms > 0 group by minute order by minute

-- question fleet_queries: load by query; a run counts with its samples of the window
with runs as (
  select server, query_id, interval_ms * (
    least(greatest(ceil((micros(until) - first_us) / (interval_ms * 1e3)), 0e0), ticks * 1e0) -
    least(greatest(ceil((micros(since) - first_us) / (interval_ms * 1e3)), 0e0), ticks * 1e0)
  ) as load_ms
  from fleet_samples where hour > hour_before(since) and hour < until
), loads as (
  select server, query_id, sum(load_ms) as load_ms from runs group by server, query_id
), observed as (
  select server, sum(observed_ms) as observed_ms
  from fleet_minutes where minute >= since and minute < until group by server
)
select l.query_id as query_id, sum(l.load_ms * 1e0 / o.observed_ms) as avg_aas,
  sum(l.load_ms) / 1e3 as backend_seconds
from loads as l join observed as o on l.server = o.server
where l.load_ms > 0 group by l.query_id order by avg_aas desc, query_id

-- question fleet_costs: cost of queries on all servers, and percentiles of their durations. The
-- percentiles come from classes of durations of all executions. Within a class they are linear
-- between the bounds that the time of all executions allows
with sums as (
  select fingerprint, sum(calls) as calls, sum(total_exec_time_ms) * 1e0 as total_ms,
    sum(histogram_0) as histogram_0, sum(histogram_1) as histogram_1, sum(histogram_2) as
    histogram_2, sum(histogram_3) as histogram_3, sum(histogram_4) as histogram_4,
    sum(histogram_5) as histogram_5, sum(histogram_6) as histogram_6, sum(histogram_7) as
    histogram_7, sum(histogram_8) as histogram_8, sum(histogram_9) as histogram_9,
    sum(histogram_10) as histogram_10, sum(histogram_11) as histogram_11, sum(histogram_12) as
    histogram_12, sum(histogram_13) as histogram_13, sum(histogram_14) as histogram_14,
    sum(histogram_15) as histogram_15, sum(histogram_16) as histogram_16, sum(histogram_17) as
    histogram_17, sum(histogram_18) as histogram_18, sum(histogram_19) as histogram_19,
    sum(histogram_20) as histogram_20, sum(histogram_21) as histogram_21, sum(histogram_22) as
    histogram_22, sum(histogram_23) as histogram_23
  from fleet_statements
  where hour > hour_before(since) and hour < until
    and middle_us >= micros(since) and middle_us < micros(until)
  group by fingerprint
), classes as (
  select 1 as class union all select 2 union all select 3 union all select 4 union all select 5
  union all select 6 union all select 7 union all select 8 union all select 9 union all select
  10 union all select 11 union all select 12 union all select 13 union all select 14 union all
  select 15 union all select 16 union all select 17 union all select 18 union all select 19
  union all select 20 union all select 21 union all select 22 union all select 23 union all
  select 24
), counted as (
  select fingerprint, total_ms, class,
    case class when 1 then histogram_0 when 2 then histogram_1 when 3 then histogram_2 when 4
      then histogram_3 when 5 then histogram_4 when 6 then histogram_5 when 7 then histogram_6
      when 8 then histogram_7 when 9 then histogram_8 when 10 then histogram_9 when 11 then
      histogram_10 when 12 then histogram_11 when 13 then histogram_12 when 14 then histogram_13
      when 15 then histogram_14 when 16 then histogram_15 when 17 then histogram_16 when 18 then
      histogram_17 when 19 then histogram_18 when 20 then histogram_19 when 21 then histogram_20
      when 22 then histogram_21 when 23 then histogram_22 when 24 then histogram_23 end as executions
  from sums cross join classes
), ranked as (
  select fingerprint, class, executions,
    sum(executions) over (partition by fingerprint) as of_all,
    sum(executions) over (partition by fingerprint order by class) as until_here,
    case when class = 1 then 0e0 else power(2e0, class - 1) end as start_us,
    total_ms * 1e3 - sum(case when class = 1 then executions * 1e0
      when class < 24 then executions * 3 * power(2e0, class - 2) else 0e0 end)
      over (partition by fingerprint) as left_us,
    total_ms * 1e3 - sum(case when class = 1 then 0e0 else executions * power(2e0, class - 1) end)
      over (partition by fingerprint) as above_us,
    sum(executions * power(2e0, class)) over (partition by fingerprint) - total_ms * 1e3 as below_us,
    sum(case when class = 24 then executions else 0 end) over (partition by fingerprint) as endless,
    case when executions < 2 then 2e0 else executions * 1e0 end as shares
  from counted
), bounded as (
  select fingerprint, class, executions, of_all, until_here - executions as before,
    case when class = 24 and executions = 1 then greatest(start_us, left_us)
      when class between 11 and 23 and below_us >= 0 and endless = 0
      then greatest(start_us, power(2e0, class) - floor(2 * below_us / shares))
      else start_us end as start_us,
    case when class = 24 and executions = 1 then greatest(start_us, left_us)
      when class = 24 then greatest(8388608e0, floor(2 * left_us / executions) - 8388608)
      when class > 10 and above_us >= 0 then least(power(2e0, class), start_us + floor(2 * above_us / shares))
      else power(2e0, class) end as end_us
  from ranked where executions > 0
), percents as (select 50 as percent union all select 95 union all select 99
), found as (
  select fingerprint, percent,
    min(start_us + (end_us - start_us) * (of_all * percent / 1e2 - before) / executions) as us
  from bounded cross join percents
  where of_all * percent > 100 * before and of_all * percent <= 100 * (before + executions)
  group by fingerprint, percent
), percentiles as (
  select fingerprint, min(case when percent = 50 then us end) / 1e3 as p50_ms,
    min(case when percent = 95 then us end) / 1e3 as p95_ms,
    min(case when percent = 99 then us end) / 1e3 as p99_ms
  from found group by fingerprint
)
select s.fingerprint as fingerprint, s.calls as calls, s.total_ms as total_ms,
  s.total_ms / nullif(s.calls, 0) as mean_ms, p.p50_ms as p50_ms, p.p95_ms as p95_ms,
  p.p99_ms as p99_ms, t.query_text as query_text
from sums as s left join percentiles as p
  on coalesce(s.fingerprint, 0) = coalesce(p.fingerprint, 0)
left join fleet_texts as t on s.fingerprint = t.fingerprint
order by total_ms desc, fingerprint
