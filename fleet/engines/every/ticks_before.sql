-- When each server last ticked at an interval before the window.
select server, interval_ms, max(micros(slot_time)) as last_slot
from ticks where micros(slot_time) < {since} group by 1, 2
