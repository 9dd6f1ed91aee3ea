-- Counters of entries, with the columns that identify an entry as text.
select
  s.server, as_text(s.query_id) as query_id, as_text(s.fingerprint) as fingerprint,
  s.query_id as number, s.database, s.username,
  case when s.toplevel = 1 then 'true' else 'false' end as toplevel,
  micros(s.time) - s.elapsed_ms * 500 as middle, {counters}
from statements as s
where s.toplevel is not null
