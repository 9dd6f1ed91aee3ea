/*
 * 54_chart.sql - stacked load as text, one line a bucket
 *
 * The first row is the legend. A gap is hatched, an idle bucket is a line.
 * Boundaries between parts are rounded, so that lengths add up.
 */
create function tacho._short(aas4 numeric)
returns text
language sql immutable parallel safe
return round(div(aas4 * 10000 + 50, 100) / 100, 2)::text;
comment on function tacho._short is 'two decimals of a number with four';

create function tacho._paint(body text, key text, color boolean)
returns text
language sql immutable parallel safe
return case when color then format(E'\x1b[38;2;%sm%s\x1b[0m', coalesce(
	'{"CPU": "080;250;123", "IO": "030;100;255", "Lock": "255;085;085", "LWLock": "255;121;198", "IPC": "000;200;255",
	"Client": "255;220;100", "Timeout": "255;165;000", "Buffer": "000;210;180", "BufferPin": "000;210;180",
	"Activity": "150;100;255", "Extension": "190;150;255"}'::jsonb ->> rtrim(split_part(key, ':', 1), '*'),
	'180;180;180'), body) else body end;
comment on function tacho._paint is 'text in the colour of a wait class';

-- Removes controls, and characters that change the direction of writing. A text has no
-- invalid characters of its encoding.
create function tacho._plain(text text)
returns text
language sql immutable parallel safe
return regexp_replace(regexp_replace(text, '[\t-\r]+', ' ', 'g'),
	case getdatabaseencoding() when 'UTF8'
		then '[\u0001-\u0008\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]'
		else '[\u0001-\u0008\u000e-\u001f\u007f]' end,
	case getdatabaseencoding() when 'UTF8' then '�' else '?' end, 'g');
comment on function tacho._plain is 'a text that a terminal shows and does not obey';

create function tacho._position(aas4 numeric, full4 numeric, width integer)
returns integer
language sql immutable parallel safe
return least(div(2 * aas4 * width * 10000 + greatest(full4 * 10000, 1), 2 * greatest(full4 * 10000, 1)), width)::integer;
comment on function tacho._position is 'column of a load when the full width is full4';

create type tacho.chart_line as (
	line integer,
	key text,
	color_key text,
	glyph text
);
comment on type tacho.chart_line is 'how a part of a chart is drawn';

create function tacho._bar(
	sums bigint[],
	observed_ms numeric,
	lines tacho.chart_line[],
	full4 numeric,
	vcpus4 numeric,
	width integer,
	color boolean
)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_bar text := '';
	v_drawn integer := 0;
	v_sum numeric := 0;
	v_end integer;
	v_line tacho.chart_line;
begin
	foreach v_line in array lines loop
		v_sum := v_sum + coalesce(sums[v_line.line], 0);
		v_end := tacho._position(tacho._round4(v_sum, observed_ms), full4, width);
		if v_end > v_drawn then
			v_bar := v_bar || tacho._paint(repeat(v_line.glyph, v_end - v_drawn), v_line.color_key, color);
			v_drawn := v_end;
		end if;
	end loop;
	if vcpus4 <= full4 and tacho._position(vcpus4, full4, width) > v_drawn then
		v_bar := v_bar || repeat(' ', tacho._position(vcpus4, full4, width) - v_drawn - 1) || '|';
	end if;
	return v_bar;
end
$$;
comment on function tacho._bar is 'the bar of a bucket; sums by line';

create function tacho._chart(
	since timestamptz,
	until timestamptz,
	bucket interval,
	by text,
	n bigint,
	width integer,
	color boolean,
	ascii boolean,
	filters jsonb,
	scope text,
	tz text,
	node text,
	by_leader boolean
)
returns table (
	bucket_start timestamptz,
	aas numeric,
	detail text,
	chart text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(since, until, scope, tz, node, by_leader, filters);
	v_n bigint := tacho._limit(coalesce(n, 3));
	v_width integer := coalesce(width, 40);
	v_ranks text[] := case when ascii then array['#', '=', '+', 'o', '*', '%', '@', 'x'] else array['█', '▓', '░', '▒'] end;
	v_by tacho.dimension;
	c tacho.coverage;
	v_observed tacho.observed[];
	v_series tacho.series[];
	v_lines tacho.chart_line[];
	v_vcpus numeric;
	v_full numeric;
	b record;
	v_sums bigint[];
begin
	if v_width not between 1 and 500 then
		raise exception 'width must be between 1 and 500'
			using errcode = 'invalid_parameter_value',
				detail = format('The value is %s.', v_width);
	end if;
	q := tacho._buckets(q, coalesce(bucket, tacho._auto_bucket(q)), tz, 100000);
	q := tacho._select(q, node);
	v_by := tacho._find_dimension(coalesce(by, 'wait_event_type'));
	q := tacho._plan(q, null, v_by.name, true);
	v_observed := array(select o from tacho._observed(q) o);
	perform tacho._check_width(bucket, v_observed);
	c := tacho._coverage(q, v_observed);
	v_vcpus := tacho._round4(c.vcpus_x100, 100);
	v_series := array(select s from tacho._series(array(select x from tacho._cells(q, null, v_by.name, true) x), v_by.name, v_n, true) s);
	v_lines := array(
		select row(s.line, coalesce(tacho._plain(s.key), '(null)'), case when s.is_other then '' else s.key end,
			case when not s.is_other then v_ranks[least(s.line, cardinality(v_ranks))] when ascii then '.' else '·' end)::tacho.chart_line
		from unnest(v_series) s
		where s.bucket is null
		order by s.line);
	select coalesce(max(tacho._round4(x.sum_ms, o.observed_ms)), 0)
	into v_full
	from (select s.bucket, sum(s.sum_ms) as sum_ms from unnest(v_series) s group by s.bucket) x
	join unnest(v_observed) o on o.bucket = x.bucket;

	detail := format('full width = %s AAS', tacho._short(v_full));
	chart := concat_ws('  ',
		(select string_agg(tacho._paint(l.glyph, l.color_key, coalesce(color, false)) || ' ' || l.key, '  ' order by l.line) from unnest(v_lines) l),
		'| ' || tacho._short(v_vcpus) || ' vCPUs');
	return next;
	for b in
		select r.bucket, r.bucket_start, (r.coverage).observed_ms, x.sum_ms, x.sums, x.detail
		from tacho._bucket_rows(q, v_observed) r
		left join lateral (
			select
				sum(s.sum_ms) as sum_ms,
				array_agg(s.sum_ms order by l.line) as sums,
				string_agg(format('%s=%s', l.key, tacho._short(tacho._round4(s.sum_ms, (r.coverage).observed_ms))), ' ' order by l.line)
					filter (where s.sum_ms > 0) as detail
			from unnest(v_lines) l
			left join unnest(v_series) s on s.line = l.line and s.bucket = r.bucket
		) x on true
		order by r.bucket
	loop
		bucket_start := b.bucket_start;
		if b.observed_ms = 0 then
			aas := null;
			detail := 'not observed';
			chart := repeat('/', v_width);
		elsif coalesce(b.sum_ms, 0) = 0 then
			aas := tacho._round4(0, 1);
			detail := 'idle';
			chart := repeat(case when ascii then '-' else '─' end, v_width);
		else
			aas := tacho._round4(b.sum_ms, b.observed_ms);
			detail := b.detail;
			chart := tacho._bar(b.sums, b.observed_ms, v_lines, v_full, v_vcpus, v_width, coalesce(color, false));
		end if;
		return next;
	end loop;
end
$$;
comment on function tacho._chart is 'chart() with its filters as JSON';

call tacho._reader($decl$chart(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	by text default 'wait_event_type',
	n integer default 3,
	width integer default 40,
	color boolean default false,
	ascii boolean default false,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	bucket_start timestamptz,
	aas numeric,
	detail text,
	chart text
) rows 61$decl$,
'select * from tacho._chart(chart.since, chart.until, chart.bucket, chart.by, chart.n, chart.width, chart.color, chart.ascii, {FILTERS}, chart.scope, chart.tz, chart.node, chart.by_leader)',
'Load over time as bars stacked by the n largest keys of a dimension; the first row is the legend. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select bucket_start, aas, chart from tacho.chart(bucket => ''2 minutes'');');
