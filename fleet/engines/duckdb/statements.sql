-- Cost of statements. A row counts as a whole, in the bucket with the middle of its
-- interval. Buckets begin at `origin` plus multiples of `width`; all times are µs.

-- The steps are tables: intervals of records, the result of recorded(), sums and executions by
-- line and bucket. Then follow the lines by rank, sums by line, and sums by line of the answer.
create table intervals (server varchar, node varchar, elapsed_ms bigint, finish bigint);
create table window_recorded (
  server varchar, bucket bigint, elapsed_ms bigint, grain_ms bigint, covered_us bigint);
create table counted as
select line, bucket, sum(columns(* exclude (server, node, hour, generation, time, elapsed_ms,
  username, database, query_id, toplevel, fingerprint, line, bucket)))
from (
  select *, 0::bigint as bucket, {
    'key': null::varchar, 'number': null::bigint, 'query_id': null::varchar,
    'database': null::varchar, 'username': null::varchar, 'toplevel': null::varchar} as line
  from empty_statements)
group by line, bucket;
create table called as select line, bucket, null::varchar as server, calls from counted;
create table statement_lines as select line, 0::bigint as place from counted;
create table line_sums as select 0::bigint as id, * exclude (bucket) from counted;
create table place_sums as select 0::bigint as id, 0::bigint as place, * exclude (line) from counted;

-- Recorded time of each server asked for: of the node that recorded most, if it has several.
create or replace macro recorded(since, until, origin, width) as table
with recordings as (
  select *, finish - elapsed_ms * 1000 as start, finish - elapsed_ms * 500 as middle
  from intervals
), counted as (
  select server, node, (middle - origin) // width as bucket, sum(elapsed_ms)::bigint as elapsed_ms,
    max(elapsed_ms) as grain_ms
  from recordings where middle >= since and middle < until group by all
), pieces as (
  select server, node, greatest(start, since) as start, least(finish, until) as finish,
    unnest(range((greatest(start, since) - origin) // width,
                 (least(finish, until) - 1 - origin) // width + 1)) as bucket
  from recordings where finish > since and start < until
), covered as (
  select server, node, bucket, sum(
    least(finish, origin + (bucket + 1) * width) - greatest(start, origin + bucket * width)
  )::bigint as covered_us
  from pieces group by all
), of_nodes as (
  select server, bucket, coalesce(elapsed_ms, 0) as elapsed_ms, coalesce(grain_ms, 0) as grain_ms,
    coalesce(covered_us, 0) as covered_us,
    row_number() over (partition by server, bucket
      order by elapsed_ms desc nulls last, covered_us desc nulls last, node) as place
  from counted full join covered using (server, node, bucket)
)
select server, bucket, elapsed_ms, grain_ms, covered_us
from asked_servers join of_nodes using (server) where place = 1;

-- The same for all servers. `window_recorded` is the result of recorded().
create or replace macro fleet_recorded(since, until, origin, width) as table
with periods as (
  select bucket, greatest(origin + bucket * width, since) as period_start,
    least(origin + (bucket + 1) * width, until) as period_end
  from range((since - origin) // width, (until - origin + width - 1) // width) as b(bucket))
select p.bucket, period_start, period_end, coalesce(sum(elapsed_ms), 0) > 0 as is_known,
  max(grain_ms) * 1000 as grain_us,
  rounded(100 * coalesce(sum(covered_us), 0)::hugeint,
    count(s.server) * (period_end - period_start)) as coverage_pct,
  count(*) filter (elapsed_ms > 0) as servers
from periods as p left join asked_servers as s on true
left join window_recorded as r on r.server = s.server and r.bucket = p.bucket
group by p.bucket, period_start, period_end;

-- Durations that a percentage of the executions did not exceed, linear between the bounds of a
-- class. A class c up to 23 has executions of 2^(c-1) to 2^c µs; class 1 begins at 0. Class 24 has
-- executions of 2^23 µs and more from older recorders. Newer ones divide these into classes 25 to
-- 36: class c has executions of 2^(c-2) to 2^(c-1) µs, class 36 of 2^34 µs and more. The total time
-- narrows the bounds:
-- if all others are as short as their classes allow, the rest lies above the begin of the class.
-- One execution may have all of it, several end at twice their share. Times come in 10 µs, so
-- classes below 1024 µs keep their bounds. A class without an end contains the executions whose
-- time is the rest of the total: one has all of it, several end at twice its mean.
create or replace macro durations(sums) as table
with named as (
  select id, (total_exec_time_ms * 1000)::hugeint as total_us, range(1, 37) as classes, [
    histogram_0, histogram_1, histogram_2, histogram_3, histogram_4, histogram_5,
    histogram_6, histogram_7, histogram_8, histogram_9, histogram_10, histogram_11,
    histogram_12, histogram_13, histogram_14, histogram_15, histogram_16, histogram_17,
    histogram_18, histogram_19, histogram_20, histogram_21, histogram_22
  ]::hugeint[] as short, histogram_23::hugeint as not_short, [
    coalesce(histogram_long_0, 0), coalesce(histogram_long_1, 0), coalesce(histogram_long_2, 0),
    coalesce(histogram_long_3, 0), coalesce(histogram_long_4, 0), coalesce(histogram_long_5, 0),
    coalesce(histogram_long_6, 0), coalesce(histogram_long_7, 0), coalesce(histogram_long_8, 0),
    coalesce(histogram_long_9, 0), coalesce(histogram_long_10, 0), coalesce(histogram_long_11, 0)
  ]::hugeint[] as long
  from query_table(sums)
), counted as (
  select id, total_us, unnest(classes) as class,
    unnest(short || [greatest(not_short - list_sum(long)::hugeint, 0)] || long) as executions
  from named
), placed as (
  select *, class not in (24, 36) as has_end, case when class = 1 then 0
    else 1::hugeint << (case when class <= 24 then class - 1 else class - 2 end) end as start_us
  from counted
), ranked as (
  select *, sum(executions) over (partition by id) as of_all,
    sum(executions) over (partition by id order by class) as until_here,
    case when has_end then case when class = 1 then 1 else start_us * 3 // 2 end
      else start_us end as middle_us
  from placed
), ended as (
  select *, case when class = 1 then 2 when has_end then start_us * 2 end::hugeint as class_end_us,
    greatest(executions, 2)::hugeint as shares,
    total_us - sum(executions * start_us) over (partition by id)::hugeint as above_us,
    sum(executions * start_us * 2 + case when class = 1 then executions * 2 else 0 end)
      over (partition by id)::hugeint - total_us as below_us,
    bool_or(executions > 0 and not has_end) over (partition by id) as is_open,
    total_us - (sum(executions * middle_us) over (partition by id))::hugeint
      + executions * middle_us as left_us
  from ranked
), bounded as (
  select * exclude (start_us),
    case when not has_end and executions = 1 then greatest(start_us, left_us)
      when has_end and start_us >= 1024 and below_us >= 0 and not is_open
      then greatest(start_us, class_end_us - 2 * below_us // shares) else start_us end as start_us,
    case when not has_end and executions = 1 then greatest(start_us, left_us)
      when not has_end
      then greatest(start_us, 2 * left_us // greatest(executions, 1) - start_us)
      when start_us >= 1024 and above_us >= 0 then least(class_end_us, start_us + 2 * above_us // shares)
      else class_end_us end as end_us
  from ended
)
select id, percent, arg_min({
    'num': (start_us * executions * 100 + (end_us - start_us)
      * (of_all * percent - 100 * (until_here - executions)))::hugeint,
    'den': (executions * 100000)::hugeint}, class) as ms
from bounded cross join (values (50), (95), (99)) as p(percent)
where executions > 0 and of_all * percent <= 100 * until_here group by id, percent;

-- Standard deviation from the sum of squares.
create or replace macro deviation(calls, total_ms, squares) as case when calls > 0 then
  round(sqrt(greatest(0.0, (squares::double - total_ms::double * total_ms::double / calls::double)
    / calls::double)) * 10000)::decimal(34, 0) * 0.0001::decimal(4, 4) end;

-- Sums of all counters by line, and by line of the answer and bucket.
create or replace macro sums_by_line() as table
select row_number() over () as id, * from (
  select line, sum(columns(* exclude (line, bucket))) from counted group by line);
create or replace macro sums_by_place(n) as table
select row_number() over () as id, * from (
  select least(place, n + 1) as place, bucket, sum(columns(c.* exclude (line, bucket)))
  from counted as c join statement_lines using (line) group by 1, 2);

-- Strengths of lines whose rank is not by a sum. `line_sums` is the result of sums_by_line().
create or replace macro lines_by_mean() as table
select id, order_of((total_exec_time_ms * 100)::hugeint, calls) as strength
from line_sums where calls > 0;
create or replace macro lines_by_percentile(wanted) as table
select id, order_of(ms.num, ms.den) as strength from durations('line_sums') where percent = wanted;

-- Executions a second of all servers: the sum over servers.
create or replace macro rates(n) as table
with calls as (
  select server, least(place, n + 1) as place, bucket, sum(calls)::hugeint as calls
  from called join statement_lines using (line) group by 1, 2, 3
), known as (select * from window_recorded where elapsed_ms > 0),
dens as (select bucket, common(list(distinct elapsed_ms)) as den from known group by bucket)
select place, bucket,
  rounded(sum(share(calls * 1000, elapsed_ms, den)), any_value(den)) as calls_per_second
from calls join known using (server, bucket) join dens using (bucket) group by place, bucket;

-- The measures of each line and period that are not sums. `place_sums` is the result of
-- sums_by_place().
create or replace macro statement_measures() as table
select place, bucket,
  rounded(100 * (total_exec_time_ms * 100)::hugeint,
    (sum(total_exec_time_ms) over (partition by bucket) * 100)::hugeint) as pct,
  rounded((total_exec_time_ms * 100)::hugeint, calls::hugeint * 100) as mean_exec_time,
  deviation(calls, total_exec_time_ms, square_exec_time_ms2) as stddev_exec_time,
  p50_exec_time, p95_exec_time, p99_exec_time
from place_sums left join (
  select id,
    any_value(rounded(ms.num, ms.den)) filter (percent = 50) as p50_exec_time,
    any_value(rounded(ms.num, ms.den)) filter (percent = 95) as p95_exec_time,
    any_value(rounded(ms.num, ms.den)) filter (percent = 99) as p99_exec_time
  from durations('place_sums') group by id) using (id);
