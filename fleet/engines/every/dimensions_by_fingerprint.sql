-- The same with what queries are known by on every server.
select d.*, f.fingerprint
from dimensions as d left join (
  select server, as_text(query_id) as query_id, as_text(min(fingerprint)) as fingerprint
  from texts group by 1, 2
) as f on d.server = f.server and d.query_id = f.query_id
