-- No constant of a utility statement is kept: random literals, in every way to
-- write one, in statements of every kind, are in no table of the schema.
\getenv preload TACHO_PRELOAD
select :'preload' like '%pg_stat_statements%' as has_pgss \gset

-- how a text is read
create function test.masked(body text) returns text language sql as $$ select tacho._without_constants(body) $$;
select test.equal(test.masked(given), kept, given)
from (values
	($a$call make_user('bob', 'it''s', -1)$a$, 'call make_user($1, $2, -$3)'),
	($a$set api.key = e'it\'s \\', N'b', x'1F', U&'d\0061' uescape '!'$a$, 'set api.key = $1, $2, $3, U&$4 uescape $5'),
	($a$do $$ begin perform 'x'; end $$ language plpgsql$a$, 'do $1 language plpgsql'),
	($t$call f($a$x$b$ $$ '$a$, $$$$, $_1$y$_1$, $é$z$é$)$t$, 'call f($1, $2, $3, $4)'),
	('call f(1, .5, 1.5e-10, 0x1F, 1_000, $3, $a$x$a$)', 'call f($4, $5, $6, $7, $8, $3, $9)'),
	($a$call a1.b2$c3$('x', "d4""'5", "6")$a$, $a$call a1.b2$c3$($1, "d4""'5", "6")$a$),
	($a$/* one /* ' */ */ call f() -- it's 2
		;$a$, 'call f()  ' || e'\n\t\t;'),
	-- the end is not known: the text was cut, or a setting decides it
	($a$call f('cut, 'x')$a$, 'call f($1$2'),
	('call f($x$cut, $$, $y$', 'call f($1'),
	('call f(e''cut\', 'call f($1'),
	('call f(1, "cut', 'call f($1, "cut'),
	('call f(/* cut', 'call f('),
	($a$call f('\', 'x')$a$, 'call f($1'),
	-- texts without constants stay as they are
	($a$/* it's */ select a, $2 from t where b = $1 order by 1 -- 'x'$a$, $a$/* it's */ select a, $2 from t where b = $1 order by 1 -- 'x'$a$),
	('select a, sum(b) from t group by 1 order by 2 desc, 1', 'select a, sum(b) from t group by 1 order by 2 desc, 1'),
	('(/* x */ select x::numeric(10, 2), y::varchar(20) from t order by a, b.c, 3)', '(/* x */ select x::numeric(10, 2), y::varchar(20) from t order by a, b.c, 3)'),
	('(values ($1::numeric(10, 2)))', '(values ($1::numeric(10, 2)))'),
	('insert into t values ($1) returning $2', 'insert into t values ($1) returning $2'),
	-- and these have constants
	('select 1 as a into t', 'select $1 as a into t'),
	('select 1 as a into t order by 1', 'select $1 as a into t order by $2'),
	-- planned statements that were stored as they came: only positions and sizes stay
	('select * from patient where ssn = 123456789 and x > 1.5e3', 'select * from patient where ssn = $1 and x > $2'),
	('select a, 1 from t where b = $1 order by 1 -- 2', 'select a, $2 from t where b = $1 order by 1'),
	('select f(10), array[2] from t where pin = 3 order by a, f(1), 1665 limit 4', 'select f($1), array[$2] from t where pin = $3 order by a, f($4), $5 limit $6'),
	(e'select 1::numeric(10,2), 2 from t\ngroup by 3\n, 4 , a + 5', e'select $1::numeric(10,2), $2 from t\ngroup by 3\n, 4 , a + $3'),
	('insert into t values (1) returning 1', 'insert into t values ($1) returning $2'),
	('explain select a::varchar(20) from t order by 1', 'explain select a::varchar($1) from t order by $2'),
	($a$select 1, 'not normalized'$a$, 'select $1, $2'),
	('', '')) v (given, kept);

\if :has_pgss
create schema elsewhere;
create extension pg_stat_statements schema elsewhere;
set pg_stat_statements.track = 'all';
create table place (id integer, body text);
create procedure put(text, numeric default 0) language plpgsql as 'begin end';
select setseed(extract(epoch from clock_timestamp())::numeric % 1);
create function test.literal() returns text language sql as $f$
	select format((array['''%s''', 'e''\''%s''', 'E''\\%s''', '$a$%s$a$', '$$''%s$$', 'U&''%s\0061''', '''''''%s'''''''])[1 + floor(random() * 7)], 'qzx' || floor(random() * 1e9))
$f$;
create function test.number() returns text language sql as $$
	select format((array['%s', '%s.5', '.%s', '%se-3', '-%s'])[1 + floor(random() * 5)], '987129871' || floor(random() * 1e4))
$$;
create table template (n integer generated always as identity, body text);
insert into template (body)
select * from unnest(array[
	'call put({s}, {n})', 'call put({s} || {s})', 'do {d}', 'set application.key = {s}', 'set local application.key to {s}', 'set session application.number = {n}',
	'copy (select {s}, {n}) to ''/dev/null''', 'copy place from program {p}', 'create table made_{i} as select {s} as a, {n} as b', 'select {s} as a, {n} as b into into_{i}',
	'with x as (select {n} as a) select *, {s} as b into with_{i} from x', 'create materialized view seen_{i} as select {s} as a, {n} as b', 'create view view_{i} as select {s} as a, {n} as b',
	'prepare p_{i} as select {s}, {n}::numeric, $1::text', 'execute p_{i}({s})', 'explain select {s}, {n}', 'explain (costs off) update place set body = {s} where id > {n}',
	'begin', 'declare c cursor for select {s}, {n}', 'move forward 987129871 from c', 'fetch 987129871 from c', 'savepoint a', 'commit',
	'begin', 'insert into place values (1, ''x'')', 'prepare transaction {g}', 'commit prepared {g}',
	'begin', 'prepare transaction {g}', 'rollback prepared {g}',
	'create role t_literals_r password {s} valid until ''2098-01-01''', 'alter role t_literals_r password {s}', 'alter role t_literals_r connection limit 987129871', 'alter role t_literals_r set application.key = {s}', 'drop role t_literals_r',
	'comment on table place is {s}', 'notify channel, {s}', 'security label on table place is {s}', 'create type kind_{i} as enum ({s})', 'alter type kind_{i} add value {s}',
	'create domain domain_{i} as text default {s} check (value <> {s})', 'create table ruled_{i} (a text default {s} check (a <> {s}), b numeric default {n})', 'alter table ruled_{i} alter a set default {s}',
	'alter table ruled_{i} add c text default {s}, add check (b <> {n})', 'create index on ruled_{i} (a) where a <> {s} and b <> {n}', 'create table part_{i} (a text) partition by list (a)', 'create table piece_{i} partition of part_{i} for values in ({s}, {s})',
	'create function function_{i}(a text default {s}) returns text language sql as {b}', 'create function atomic_{i}() returns text language sql return {s} || {n}', 'create rule rule_{i} as on update to ruled_{i} where new.a = {s} do also delete from place where body = {s}',
	'create policy policy_{i} on ruled_{i} using (a = {s})', 'create statistics statistics_{i} on (a || {s}), b from ruled_{i}', 'create subscription t_literals connection ''host=nowhere password=qzx1'' publication p with (connect = false, slot_name = none)',
	'alter subscription t_literals connection ''host=nowhere password=qzx2''', 'drop subscription t_literals', 'alter database t_literals set application.key = {s}', 'begin', 'lock table place /* {s} {n} */', 'commit', 'vacuum place -- {s}',
	'listen channel /* it''s {s} */', 'create sequence sequence_{i} start 987129871', 'alter sequence sequence_{i} restart 987129871', 'create server server_{i} foreign data wrapper nothing options (password {s})', 'create text search dictionary dictionary_{i} (template = simple, stopwords = {s})',
	'create aggregate aggregate_{i}(text) (sfunc = textcat, stype = text, initcond = {s})', 'create trigger trigger_{i} before update on ruled_{i} for each row when (new.a <> {s}) execute function suppress_redundant_updates_trigger()',
	'create publication publication_{i} for table ruled_{i} where (b > {n})']);
create foreign data wrapper nothing;
-- each template three times; what fails is executed, too, or never had a text
create table work as
select r, n, body, 'qzx' || floor(random() * 1e9) || '_' || r as gid from template, generate_series(1, 3) r;
update work set body = replace(body, '{i}', r::text);
create function test.filled(body text, gid text) returns text language plpgsql as $$
begin
	body := replace(replace(body, '{g}', quote_literal(gid)), '{p}', quote_literal('true # qzx1'));
	body := replace(body, '{d}', '$do$ begin perform ' || test.literal() || ', ' || test.number() || '; end $do$');
	body := replace(body, '{b}', '$body$ select ' || test.literal() || ' || a $body$');
	while body ~ '\{[sn]\}' loop
		body := regexp_replace(body, '\{s\}', replace(test.literal(), '\', '\\'));
		body := regexp_replace(body, '\{n\}', test.number());
	end loop;
	return body;
end $$;
\set ON_ERROR_STOP off
set client_min_messages = error;
\o /dev/null
select test.filled(body, first_value(gid) over (partition by r, (select count(*) from template t where t.n <= w.n and t.body = 'begin')))
from work w order by r, n \gexec
\o
reset client_min_messages;
\set ON_ERROR_STOP on
select test.equal((count(*) > 50)::text, 'true', count(*) || ' statements with constants') from elsewhere.pg_stat_statements where query ~ 'qzx|987129871' and toplevel;
create table line as
select distinct timestamptz '2026-03-01 20:00+00' as time, 1 as pid, queryid as query_id from elsewhere.pg_stat_statements where queryid is not null;
select tacho.import_sessions('line');
select test.equal((tacho._find_texts() > 50)::text, 'true', 'texts are kept');
select tacho._record_statements(1), tacho._record_statements(60001);
create function test.marked() returns text language plpgsql as $$
declare
	v_table regclass;
	v_found text;
begin
	for v_table in select oid from pg_class where relnamespace = 'tacho'::regnamespace and relkind in ('r', 'v') loop
		execute format('select string_agg(x::text, e''\n'') from %s x where x::text ~ ''qzx|987129871''', v_table) into v_found;
		exit when v_found is not null;
	end loop;
	return v_table || ': ' || v_found;
end $$;
select test.equal(test.marked(), null, 'no constant in any table');

-- unless that is wanted
select tacho.configure('utility_literals', 'true');
truncate tacho.text;
update tacho.watermark set ms = 0 where name = 'texts'; -- no pause
select tacho._find_texts();
select test.equal((count(*) > 50)::text, 'true', 'constants are kept') from tacho.text where body ~ 'qzx|987129871';
\endif
