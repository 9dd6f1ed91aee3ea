-- Load in ms by key and bucket, from the small table, when all that is observed of a bucket is
-- observed for all of it.
select key, by_key, bucket, {whole_ms} as observed_ms, load_ms
from (
  select {key} as key, {by_key} as by_key, idiv(minute, {width}) as bucket,
    sum(weight_ms) as load_ms
  from minutes where minute >= {since} and minute < {until} and {conditions} group by 1, 2, 3
) as loads
