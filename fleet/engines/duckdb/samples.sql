-- Load of a fleet. The load of a server is the weight of its samples divided by the
-- time it was observed. The load of a fleet is the sum of its servers' loads, never
-- their mean. Times are µs since 1970 UTC; `width` is the width of buckets.

-- Observed time by server and bucket. `ticks_alike` has the ticks of the window.
create or replace macro observed() as table
select
  server, bucket,
  coalesce(sum(length_ms) filter (is_failed = 0), 0)::bigint as observed_ms,
  coalesce(sum(length_ms) filter (is_failed = 1), 0)::bigint as failed_ms,
  coalesce(sum(ticks) filter (is_failed = 0), 0)::bigint as ticks_observed,
  coalesce(sum(ticks) filter (is_failed = 1), 0)::bigint as ticks_failed,
  arg_max(interval_ms, last_slot) as interval_ms,
  max(last_slot) as last_slot,
  arg_max(vcpus, last_slot) filter (vcpus > 0) as vcpus,
  max(last_slot) filter (vcpus > 0) as vcpus_slot
from ticks_alike group by all;

-- The interval of the last tick of each server before the window.
create or replace macro interval_before() as table
select server, arg_max(interval_ms, last_slot) as interval_ms from ticks_before group by server;

-- Number of servers with the same observed time in a bucket.
create or replace macro alike() as table
select bucket, observed_ms, count(*) as servers
from window_observed where observed_ms > 0 group by all;

-- Buckets in which a server was observed only in part.
create or replace macro in_part(since, until, width) as table
from observed_alike
where observed_ms * 1000 <> least((bucket + 1) * width, until) - greatest(bucket * width, since);

-- Steps made from cells of samples: loads of the window by server and line, and loads of a
-- bucket by line. Servers with the same observed time are added together, because their loads
-- have one divisor.
create or replace macro totals(cells) as table
select server, line, sum(load_ms)::bigint as load_ms, max(sessions) as sessions
from query_table(cells) group by all;
create or replace macro loads(cells) as table
select line, bucket, observed_ms, sum(load_ms)::bigint as load_ms, max(sessions) as sessions
from query_table(cells) join window_observed using (server, bucket)
where observed_ms > 0 group by all;

-- Average and sum of each line. A line without `sessions` has several keys, so its most rows in
-- one tick are not known.
create or replace macro averages(totals) as table
with whole as (
  select server, sum(observed_ms)::bigint as observed_ms
  from window_observed where observed_ms > 0 group by server
),
whole_den as (select common(list(distinct observed_ms)) as den from whole)
select line, sum(share(load_ms, observed_ms, den)) as num, any_value(den) as den,
  sum(load_ms)::hugeint as load_ms,
  case when bool_and(sessions is not null) then max(sessions) end as sessions
from query_table(totals) join whole using (server) cross join whole_den group by line;

-- The load of each line and bucket.
create or replace macro measures_by_bucket(loads) as table
with buckets as (
  select bucket, common(list(distinct observed_ms)) as den from observed_alike group by bucket
)
select line, bucket, sum(share(load_ms, observed_ms, den)) as num, any_value(den) as den,
  sum(load_ms)::hugeint as load_ms,
  case when bool_and(sessions is not null) then max(sessions) end as sessions
from query_table(loads) join buckets using (bucket) group by line, bucket;

-- The measures of a line of an answer. Peaks are null without loads of buckets.
create or replace macro measures(totals, loads) as table
with spread as (
  select line, list({'num': num, 'den': den} order by order_of(num, den)) as found
  from measures_by_bucket(loads) group by line
)
select a.*, found[-1] as peak,
  percentile(found, (select count(distinct bucket) from observed_alike), 990) as p99
from averages(totals) as a left join spread as s on a.line is not distinct from s.line;

-- Observed time of each server asked for (`asked_servers`) in the window.
create or replace macro seen_in_window(since, until) as table
select server, 1 as servers, since as period, until - since as length_us,
  coalesce(sum(observed_ms), 0)::bigint as observed_ms,
  coalesce(sum(failed_ms), 0)::bigint as failed_ms,
  coalesce(sum(ticks_observed), 0)::bigint as ticks_observed,
  coalesce(sum(ticks_failed), 0)::bigint as ticks_failed,
  coalesce(arg_max(o.interval_ms, last_slot), any_value(b.interval_ms)) as interval_ms,
  arg_max(vcpus, vcpus_slot) as vcpus
from asked_servers left join window_observed as o using (server)
left join interval_before() as b using (server)
group by server;

-- The same by bucket; `interval_ms` comes from the last tick until then.
create or replace macro seen_in_buckets(since, until, width) as table
select server, 1 as servers, bucket as period,
  least((bucket + 1) * width, until) - greatest(bucket * width, since) as length_us,
  coalesce(observed_ms, 0) as observed_ms, coalesce(failed_ms, 0) as failed_ms,
  coalesce(ticks_observed, 0) as ticks_observed, coalesce(ticks_failed, 0) as ticks_failed,
  coalesce(
    last_value(o.interval_ms ignore nulls) over (
      partition by server order by bucket rows unbounded preceding),
    b.interval_ms) as interval_ms,
  vcpus
from asked_servers
cross join range(since // width, (until + width - 1) // width) as r(bucket)
left join window_observed as o using (server, bucket)
left join interval_before() as b using (server);

-- The same for servers with equal observed time; ticks and CPUs are not known.
create or replace macro seen_alike(since, until, width) as table
with asked as (
  select bucket, (select count(*) from asked_servers) as servers
  from range(since // width, (until + width - 1) // width) as r(bucket)
), seen as (
  from observed_alike
  union all by name
  select bucket, 0 as observed_ms, servers - coalesce(known, 0) as servers
  from asked left join (
    select bucket, sum(servers) as known from observed_alike group by bucket) using (bucket)
)
select servers, bucket as period,
  least((bucket + 1) * width, until) - greatest(bucket * width, since) as length_us,
  observed_ms, 0 as failed_ms, 0 as ticks_observed, 0 as ticks_failed
from seen where servers > 0;

-- Expected ticks of a period of a server, and its observed part.
create or replace macro server_coverage(seen) as table
select *,
  ticks_observed + ticks_failed + greatest(0, length_us - (observed_ms + failed_ms) * 1000)
    // (coalesce(nullif(interval_ms, 0), 1000) * 1000) as ticks_expected,
  least(observed_ms * 1000, length_us) as covered_us
from query_table(seen);

-- The same for all servers together, by period; a row may stand for several `servers`.
create or replace macro fleet_coverage(seen) as table
select period, sum(vcpus)::decimal(38, 4) as vcpus,
  sum(ticks_expected)::bigint as ticks_expected,
  sum(ticks_observed)::bigint as ticks_observed,
  sum(ticks_failed)::bigint as ticks_failed,
  rounded(100 * sum(covered_us * servers), sum(length_us * servers)) as coverage_pct,
  coalesce(sum(servers) filter (observed_ms > 0), 0)::bigint as servers
from server_coverage(seen) group by period;
