-- Rows of `aas`, `top` and `timeline`. A line of an answer is a key and, with `by`, a
-- part of it. (place, by_place) number the lines, the largest first; number n + 1 is the
-- rest.

create or replace macro strength(order_by, avg, peak, p99, sessions) as
  case order_by when 'peak' then order_of(peak.num, peak.den)
                when 'p99' then order_of(p99.num, p99.den)
                when 'sessions' then sessions else avg end;

-- Ranks keys; equal keys by name, null last. Lines of `…_of_keys` are {key, null}.
create or replace macro ranked_keys(order_by) as table
select line.key as key, row_number() over (
  order by strength(order_by, num, peak, p99, sessions) desc, line.key asc nulls last) as place
from measures('totals_of_keys', 'loads_of_keys');

-- Ranks parts of keys. Lines of `…_of_parts` are {key, by_key}.
create or replace macro ranked_parts(order_by) as table
select key, line.by_key as by_key, place, row_number() over (
  partition by place
  order by strength(order_by, num, peak, p99, sessions) desc, line.by_key asc nulls last
) as by_place
from measures('totals_of_parts', 'loads_of_parts') join key_ranks on line.key is not distinct from key;

-- Totals and loads by line of the answer. `line_ranks` has the numbers of lines.
create or replace macro lines_of(summed, n) as table
select t.* exclude (line, sessions), {
    'place': least(place, n + 1),
    'by_place': case when place > n then 1 else least(by_place, n + 1) end} as line,
  case when place <= n and by_place <= n then sessions end as sessions
from query_table(summed) as t join line_ranks
  on line.key is not distinct from key and line.by_key is not distinct from by_key;
create or replace macro totals_by_line(totals, n) as table
select server, line, sum(load_ms)::bigint as load_ms, max(sessions) as sessions
from lines_of(totals, n) group by all;
create or replace macro loads_by_line(loads, n) as table
select line, bucket, observed_ms, sum(load_ms)::bigint as load_ms, max(sessions) as sessions
from lines_of(loads, n) group by all;

create or replace macro top_rows(n) as table
select
  case when line.place > n then '(other)' else key end as key,
  case when line.place > n or line.by_place > n then '(other)' else by_key end as by_key,
  line.place > n as is_other, line.place > n or line.by_place > n as is_other_by,
  rounded(num, den) as avg_aas, rounded(peak.num, peak.den) as peak_aas,
  rounded(p99.num, p99.den) as p99_aas, sessions as peak_sessions,
  rounded(load_ms, 1000) as backend_seconds,
  rounded(100 * num, sum(num) over ()) as pct
from measures('totals_of_lines', 'loads_of_lines') join line_ranks as r
  on r.place = line.place and r.by_place = line.by_place
order by line.place, line.by_place;

-- One row, even if no session was active; null if nothing was observed.
create or replace macro aas_row() as table
select
  case when seen > 0 then coalesce(rounded(num, den), 0) end as avg_aas,
  case when seen > 0 then coalesce(rounded(peak.num, peak.den), 0) end as peak_aas,
  case when seen > 0 then coalesce(rounded(p99.num, p99.den), 0) end as p99_aas,
  case when seen > 0 then coalesce(sessions, 0) end as peak_sessions,
  case when seen > 0 then coalesce(rounded(load_ms, 1000), 0) end as backend_seconds
from (select coalesce(sum(observed_ms), 0) as seen from window_observed)
left join measures('totals_of_keys', 'loads_of_keys') on true;

-- A row for each bucket and line. `seen_buckets` is the result of seen_in_buckets().
create or replace macro timeline_rows(n, width) as table
with lines as (
  select distinct least(place, n + 1) as place,
    case when place > n then '(other)' else key end as key, place > n as is_other
  from line_ranks)
select c.period * width as bucket_start, key, is_other,
  case when servers > 0 then coalesce(rounded(num, den), 0) end as avg_aas,
  case when servers > 0 and not is_other then coalesce(sessions, 0) end as peak_sessions,
  case when servers > 0 then coalesce(rounded(load_ms, 1000), 0) end as backend_seconds,
  c.* exclude (period)
from fleet_coverage('seen_buckets') as c cross join lines
left join measures_by_bucket('loads_of_lines') as m
  on m.bucket = c.period and m.line.place = lines.place
order by bucket_start, lines.place;

-- Attributes of each server from its newest hour that was read, and its coverage.
create or replace macro server_rows() as table
select server, host, labels, vcpus::decimal(38, 4) as vcpus, ticks_expected, ticks_observed, ticks_failed,
  rounded(100 * covered_us, length_us) as coverage_pct, damage, shipper
from server_coverage('seen_window') left join (
  select server, arg_max(host, s.hour) as host, arg_max(labels, s.hour) as labels,
    arg_max(shipper, s.hour) as shipper,
    string_agg(distinct nullif(damage, '')) as damage
  from known_servers as s group by server) using (server)
order by server;
