-- The small table with the dimensions that it has.
select server, micros(minute) as minute, weight_ms,
  case when wait_event like 'CPU%' then 'CPU'
       when position(':' in wait_event) > 0
       then substr(wait_event, 1, position(':' in wait_event) - 1) end as wait_event_type,
  wait_event
from load_minute where weight_ms > 0
