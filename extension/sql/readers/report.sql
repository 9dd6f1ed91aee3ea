create function tacho._report(
	at timestamptz default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 5,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
)
language c volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho._report is
'The report of tacho.report() at a full timestamp. Example: select * from tacho._report();';


-- The locked relations of a part of the report get their names.
create function tacho._with_relations(report jsonb, part text)
returns jsonb
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case jsonb_typeof(report -> part)
		when 'array' then jsonb_set(report, array[part], coalesce(
			(
				select jsonb_agg(
						e.value || jsonb_build_object(
							'relation',
							tacho._relation(
								(e.value ->> 'lock_database')::bigint,
								(e.value ->> 'lock_relation')::bigint
							)
						)
						order by e.ordinality
					)
					from jsonb_array_elements(report -> part) with ordinality e
			),
			'[]'
		))
		else report
	end;
end;

comment on function tacho._with_relations is
'A part of a report, blockers or tree, with the names of locked relations. Example: select tacho._with_relations(report, ''blockers'') from tacho._report();';


create function tacho.report(
	at text default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 5,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
)
language sql volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
begin atomic
	select r.period_start, r.period_end,
		tacho._with_relations(tacho._with_relations(r.report, 'blockers'), 'tree')
	from tacho._report(
		at => tacho._moment(report.at, report.tz),
		since => report.since,
		until => report.until,
		n => report.n,
		/* FILTERS OF report */
		scope => report.scope,
		tz => report.tz,
		node => report.node,
		by_leader => report.by_leader
	) r;
end;

comment on function tacho.report is
'What was the database doing? One document about a window, or with "at" about half an hour around a moment; "03:12" is the last such time in tz (default: zone of the session). It has load against vCPUs, a timeline by wait class, and the n largest waits, queries (with texts and waits), databases, users and applications. It has blockers with names of locked relations of this database, and changes against the same time the day before, or just before. It has markers, coverage and gaps; "compat" has the keys of pg_ash''s report. Filters: {DIMENSIONS}; blockers and markers are shown for the whole server. The command tacho report makes a page of it. Example: select jsonb_pretty(report -> ''queries'') from tacho.report(at => ''03:12'');';
