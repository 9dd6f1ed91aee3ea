-- The same by the observed time of the server in the bucket. Looks up only buckets that were
-- observed in part: a minute with load was observed.
select key, by_key, bucket, coalesce(part_ms, {whole_ms}) as observed_ms, load_ms
from (
  select {key} as key, {by_key} as by_key, idiv(minute, {width}) as bucket, part_ms,
    sum(weight_ms) as load_ms
  from minutes as m left join (
    select of_server, bucket, part_ms
    from (
      select server as of_server, idiv(minute, {width}) as bucket, sum(observed_ms) as part_ms
      from minutes_observed where minute >= {since} and minute < {until} group by 1, 2
    ) as observed
    where part_ms <> {whole_ms}
  ) as p on m.server = p.of_server and idiv(m.minute, {width}) = p.bucket
  where minute >= {since} and minute < {until} and {conditions} group by 1, 2, 3, 4
) as loads
