-- Number of servers with the same observed time in a bucket.
select bucket, observed_ms, count(*) as servers
from (
  select server, idiv(minute, {width}) as bucket, sum(observed_ms) as observed_ms
  from minutes_observed where minute >= {since} and minute < {until} group by 1, 2
) as parts
where observed_ms > 0 group by 1, 2
