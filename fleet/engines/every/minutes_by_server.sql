-- Observed time of the window, by server.
select server, sum(observed_ms) as observed_ms
from minutes_observed where minute >= {since} and minute < {until} group by 1
