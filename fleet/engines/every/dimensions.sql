-- Samples with every dimension as text, as readers call them.
select
  server, node, micros(first_slot) as first_slot, ticks, interval_ms, scope,
  case when leader_pid is null then 0 else 1 end as is_worker,
  case when wait_event like 'CPU%' then 'CPU'
       when position(':' in wait_event) > 0
       then substr(wait_event, 1, position(':' in wait_event) - 1) end as wait_event_type,
  wait_event,
  case when wait_event = 'CPU*' then wait_event
       when wait_event like 'CPU:%' then substr(wait_event, 5) end as cpu,
  as_text(query_id) as query_id,
  as_text(plan_id) as plan_id,
  tags,
  as_text(pid) as pid,
  backend_type, category, database, username, application, client_addr,
  as_text(leader_pid) as leader,
  state,
  as_text(blocked_by) as blocked_by
from sample_runs
where weight_ms > 0
