-- Load in ms and most rows in one tick, by server, key and bucket.
with runs as (
  select server, node, {key} as key, {by_key} as by_key, interval_ms, ticks, first_slot
  from {source} where {conditions}
), ticks_of_runs as (
  select server, node, key, by_key, interval_ms, first_slot, {each_tick} as tick from runs
), slots as (
  select server, node, key, by_key, interval_ms, first_slot + interval_ms * 1000 * tick as slot
  from ticks_of_runs
), by_tick as (
  select server, node, key, by_key, slot, count(*) as sessions, sum(interval_ms) as load_ms
  from slots where slot >= {since} and slot < {until} group by 1, 2, 3, 4, 5
)
select server, key, by_key, idiv(slot, {width}) as bucket, sum(load_ms) as load_ms,
  max(sessions) as sessions
from by_tick group by 1, 2, 3, 4
