-- Rows of `compare`. The steps: measures of keys in this window and in the one before, and the
-- size of their change.
create table measured (key varchar, num hugeint, den hugeint, load_ms hugeint);
create table measured_before as from measured;
create table changes (
  key varchar, load_1 hugeint, load_2 hugeint, delta hugeint, den hugeint, place bigint);

-- Measures of keys in one of two windows, for `compare`.
create or replace macro key_measures() as table
select line.key as key, num, den, load_ms from averages('totals_of_keys');
create or replace macro measured_lines() as table
select line.place as place, rounded(num, den) as avg_aas, rounded(peak.num, peak.den) as peak_aas,
  rounded(p99.num, p99.den) as p99_aas, sessions as peak_sessions,
  rounded(load_ms, 1000) as backend_seconds, rounded(100 * num, sum(num) over ()) as pct
from measures('totals_of_lines', 'loads_of_lines');

-- Keys by the size of their change; equal keys by name. `measured` and `measured_before`
-- are results of key_measures().
create or replace macro changed_keys() as table
select key, load_1, load_2, delta, den, row_number() over (
  order by order_of(abs(delta), den) desc, key asc nulls last) as place
from (
  select coalesce(b.key, a.key) as key, coalesce(b.load_ms, 0) as load_1,
    coalesce(a.load_ms, 0) as load_2,
    coalesce(a.num, 0)::hugeint * den_1 - coalesce(b.num, 0)::hugeint * den_2 as delta,
    den_1::hugeint * den_2 as den
  from measured_before as b full join measured as a on b.key is not distinct from a.key
  cross join (select coalesce(max(den), 1) as den_1 from measured_before)
  cross join (select coalesce(max(den), 1) as den_2 from measured));

-- `new`, `gone`, `up`, `down` or `same`, by line; null if a window was not observed.
create or replace macro changed_lines(n, seen) as table
select place, key, case when seen then rounded(abs(delta), den) * sign(delta)::tinyint end as avg_delta,
  case when not seen then null when load_1 = 0 and load_2 > 0 then 'new'
    when load_1 > 0 and load_2 = 0 then 'gone' when delta > 0 then 'up'
    when delta < 0 then 'down' else 'same' end as change
from (
  select least(place, n + 1) as place, any_value(key) as key, sum(load_1)::hugeint as load_1,
    sum(load_2)::hugeint as load_2, sum(delta)::hugeint as delta, any_value(den) as den
  from changes group by 1)
order by place;
