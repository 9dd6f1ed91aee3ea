-- Load of a fleet. A server's load is what its samples weigh by what it observed; the
-- load of a fleet is the sum of its servers' loads, never their mean. Times are µs
-- since 1970 UTC, `width` is that of buckets.

-- What was observed, by server and bucket. `ticks_alike` has the ticks of the window.
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

-- What a line of an answer measures. `window_observed` is what observed() gives; a cell
-- without `sessions` is of several keys, whose most rows in one tick are not known.
create or replace macro measures(cells) as table
with seen as (select * from window_observed where observed_ms > 0),
whole as (select server, sum(observed_ms)::bigint as observed_ms from seen group by server),
whole_den as (select common(list(distinct observed_ms)) as den from whole),
buckets as (
  select bucket, common(list(distinct observed_ms)) as den from seen group by bucket
),
averages as (
  select line, sum(share(load_ms, observed_ms, den)) as num, any_value(den) as den,
    sum(load_ms)::hugeint as load_ms,
    case when bool_and(sessions is not null) then max(sessions) end as sessions
  from (select server, line, sum(load_ms)::hugeint as load_ms,
          case when bool_and(sessions is not null) then max(sessions) end as sessions
        from query_table(cells) group by all)
  join whole using (server) cross join whole_den group by line
),
alike as (
  select line, bucket, observed_ms, sum(load_ms)::hugeint as load_ms
  from query_table(cells) join seen using (server, bucket) group by all
),
loads as (
  select line, bucket, sum(share(load_ms, observed_ms, den)) as num, any_value(den) as den
  from alike join buckets using (bucket) group by line, bucket
),
spread as (
  select line, list({'num': num, 'den': den} order by order_of(num, den)) as found
  from loads group by line
)
select a.*, found[-1] as peak,
  percentile(found, (select count(*) from buckets), 990) as p99
from averages as a join spread as s on a.line is not distinct from s.line;

-- The same by bucket.
create or replace macro measures_by_bucket(cells) as table
with seen as (select * from window_observed where observed_ms > 0),
buckets as (
  select bucket, common(list(distinct observed_ms)) as den from seen group by bucket
)
select line, bucket, sum(share(load_ms, observed_ms, den)) as num, any_value(den) as den,
  sum(load_ms)::hugeint as load_ms,
  case when bool_and(sessions is not null) then max(sessions) end as sessions
from query_table(cells) join seen using (server, bucket) join buckets using (bucket)
group by line, bucket;

-- What was observed of each server that is asked for (`asked_servers`) in the window.
create or replace macro seen_in_window(since, until) as table
select server, since as period, until - since as length_us,
  coalesce(sum(observed_ms), 0)::bigint as observed_ms,
  coalesce(sum(failed_ms), 0)::bigint as failed_ms,
  coalesce(sum(ticks_observed), 0)::bigint as ticks_observed,
  coalesce(sum(ticks_failed), 0)::bigint as ticks_failed,
  coalesce(arg_max(o.interval_ms, last_slot), any_value(b.interval_ms)) as interval_ms,
  arg_max(vcpus, vcpus_slot) as vcpus
from asked_servers left join window_observed as o using (server)
left join interval_before() as b using (server)
group by server;

-- The same by bucket; `interval_ms` is that of the last tick until then.
create or replace macro seen_in_buckets(since, until, width) as table
select server, bucket as period,
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

-- Ticks that a period of a server should have, and how much of it was observed.
create or replace macro server_coverage(seen) as table
select *,
  ticks_observed + ticks_failed + greatest(0, length_us - (observed_ms + failed_ms) * 1000)
    // (coalesce(nullif(interval_ms, 0), 1000) * 1000) as ticks_expected,
  least(observed_ms * 1000, length_us) as covered_us
from query_table(seen);

-- The same of all servers together, by period.
create or replace macro fleet_coverage(seen) as table
select period, sum(vcpus)::decimal(38, 4) as vcpus,
  sum(ticks_expected)::bigint as ticks_expected,
  sum(ticks_observed)::bigint as ticks_observed,
  sum(ticks_failed)::bigint as ticks_failed,
  rounded(100 * sum(covered_us), sum(length_us)) as coverage_pct,
  count(*) filter (observed_ms > 0) as servers
from server_coverage(seen) group by period;
