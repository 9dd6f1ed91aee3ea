-- Executions by the same and server.
select {line}, idiv(middle - {origin}, {width}) as bucket, e.server, sum(e.calls) as calls
from entries as e
where middle >= {since} and middle < {until} and {conditions}
group by 1, 2, 3, 4, 5, 6, 7, 8
