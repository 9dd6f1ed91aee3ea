-- Ticks of the window, added up by server and bucket where they are alike.
select server, idiv(micros(slot_time), {width}) as bucket,
  case when tick_status = 'failed' then 1 else 0 end as is_failed, interval_ms, vcpus,
  count(*) as ticks, sum(interval_ms) as length_ms, max(micros(slot_time)) as last_slot
from ticks
where micros(slot_time) >= {since} and micros(slot_time) < {until}
group by 1, 2, 3, 4, 5
