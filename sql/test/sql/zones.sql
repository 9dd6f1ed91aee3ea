-- Buckets begin at the first minute at which the clock reaches a multiple of their
-- width. Buckets of an hour or less also begin when the clock is changed.
create function test.edges(zone text, since timestamptz, until timestamptz, width interval)
returns text
language sql
as $$
	with looked as (
		select m, (extract(epoch from m at time zone zone) / 60)::bigint as clock,
			extract(epoch from (m at time zone zone) - (m at time zone 'UTC')) as ahead
		from generate_series(since - interval '2 days', until, '1 minute') m
	), reached as (
		select *, (case when width <= '1 hour' then clock else max(clock) over (order by m) end) / (extract(epoch from width)::bigint / 60) as multiple
		from looked
	), stepped as (
		select *, lag(multiple) over (order by m) as previous, lag(ahead) over (order by m) as ahead_before
		from reached
	)
	select string_agg(to_char(m at time zone 'UTC', 'MM-DD HH24:MI'), ' ' order by m)
	from stepped
	where m > since and m < until
		and (multiple <> previous or width <= '1 hour' and ahead <> ahead_before)
$$;

create function test.starts(zone text, since timestamptz, until timestamptz, width interval)
returns text
language plpgsql
as $$
declare
	q tacho.question := tacho._ask(since, until, null, null, null, false, null);
begin
	perform set_config('timezone', zone, true);
	q := tacho._buckets(q, width, null, 100000);
	perform set_config('timezone', 'UTC', true);
	if tacho._bucket_start(q, 0) > q.since_us or tacho._bucket_start(q, 1) <= q.since_us and q.n_buckets > 0
		or tacho._bucket_start(q, q.n_buckets) < q.until_us
	then
		return 'the first bucket has not the begin of the window, or the last not its end';
	end if;
	return (
		select string_agg(to_char(tacho._time(tacho._bucket_start(q, b)) at time zone 'UTC', 'MM-DD HH24:MI'), ' ' order by b)
		from generate_series(1, q.n_buckets - 1) b);
end
$$;

select test.equal(test.starts(z.zone, z.day - interval '30 hours', z.day + interval '40 hours', w),
	test.edges(z.zone, z.day - interval '30 hours', z.day + interval '40 hours', w), format('%s at %s, %s', w, z.zone, z.day))
from (values
	('Europe/Berlin', timestamptz '2025-03-30 01:00+00'),
	('Europe/Berlin', '2025-10-26 01:00+00'),
	('Asia/Kathmandu', '2025-06-01 00:10+00'),
	('Australia/Lord_Howe', '2025-04-05 15:00+00'),
	('Australia/Lord_Howe', '2025-10-04 15:30+00'),
	('America/Sao_Paulo', '2018-11-04 03:00+00'),
	('Pacific/Apia', '2011-12-30 10:00+00'),
	('<+0330>-03:30', '2025-01-01 00:00+00'),
	('UTC', '2025-03-30 01:00+00')
) z (zone, day)
cross join unnest(array['1 minute', '7 minutes', '30 minutes', '1 hour', '90 minutes', '6 hours', '1 day', '36 hours', '7 days']::interval[]) w;

-- the time of a report is in tz, else in the session's zone
set timezone = 'Europe/Berlin';
select test.equal(tacho._moment(m.at, m.tz)::text, m.expected, format('%s in %s', m.at, m.tz))
from (values
	('2025-10-26 12:00', null, '2025-10-26 12:00:00+01'),
	('2025-10-26 12:00', 'Asia/Kathmandu', '2025-10-26 07:15:00+01'),
	('2025-10-26', 'Asia/Kathmandu', '2025-10-25 20:15:00+02'),
	('2025-10-26 12:00+00', 'Asia/Kathmandu', '2025-10-26 13:00:00+01'),
	('2025-10-26T12:00:00.5Z', 'Asia/Kathmandu', '2025-10-26 13:00:00.5+01'),
	('2025-10-26 12:00 America/New_York', 'Asia/Kathmandu', '2025-10-26 17:00:00+01'),
	('2025-10-26 01:00 pm', 'Asia/Kathmandu', '2025-10-26 08:15:00+01')
) m (at, tz, expected);
select test.equal((tacho._moment(to_char((now() - interval '1 minute') at time zone z, 'HH24:MI:SS'), tz))::text,
	date_trunc('second', now() - interval '1 minute')::text, 'a time of day in ' || z)
from (values ('Europe/Berlin', null), ('Asia/Kathmandu', 'Asia/Kathmandu')) x (z, tz);
select test.equal((tacho._moment('now', 'Asia/Kathmandu') = now())::text, 'true', 'now');

-- statements by the session's day
select test.equal(test.error($$select * from tacho.statements_history('2025-10-25', '2025-10-27', '1 day')$$), 'no error', 'statements_history');
