-- When statistics of statements were recorded.
select server, node, elapsed_ms, micros(time) as finish
from statements
where toplevel is null and micros(time) > {since}
  and micros(time) - elapsed_ms * 1000 < {until}
