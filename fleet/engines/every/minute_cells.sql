-- Load in ms by server, key and bucket, from the small table.
select server, {key} as key, {by_key} as by_key, idiv(minute, {width}) as bucket,
  sum(weight_ms) as load_ms
from minutes where minute >= {since} and minute < {until} and {conditions} group by 1, 2, 3, 4
