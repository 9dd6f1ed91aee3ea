-- What was observed of the window, by server and bucket, from the small table.
select server, idiv(micros(minute), {width}) as bucket, 0 as is_failed,
  sum(observed_ms) as length_ms, max(micros(minute)) as last_slot
from load_minute
where observed_ms is not null and micros(minute) >= {since} and micros(minute) < {until}
group by 1, 2
