-- Load in ms by server and key, from the small table.
select server, {key} as key, {by_key} as by_key, sum(weight_ms) as load_ms
from minutes where minute >= {since} and minute < {until} and {conditions} group by 1, 2, 3
