-- Bad arguments: a clear error with a hint, whichever side finds it.
create extension tacho;
\getenv testdir PG_ABS_SRCDIR
\set history :testdir /data/history.psql
\set node 00000000000000e1
\i :history

-- SQLSTATE, message, detail and hint of what happens
create function pg_temp.refusal(call text) returns setof text
language plpgsql as $$
declare
	v_state text;
	v_message text;
	v_detail text;
	v_hint text;
begin
	execute 'select * from tacho.' || call;
	return next 'no error';
exception when others then
	get stacked diagnostics
		v_state = returned_sqlstate,
		v_message = message_text,
		v_detail = pg_exception_detail,
		v_hint = pg_exception_hint;
	return next v_state || ': ' || v_message;
	if v_detail <> '' then
		return next 'detail: ' || v_detail;
	end if;
	if v_hint <> '' then
		return next 'hint: ' || v_hint;
	end if;
end
$$;
\pset format unaligned
\pset tuples_only on

-- windows
select pg_temp.refusal($$aas(since => '2026-01-05 13:00+00', until => '2026-01-05 12:00+00')$$);
select pg_temp.refusal($$aas(since => 'infinity')$$);
select pg_temp.refusal($$top('wait_event', until => '-infinity')$$);
select pg_temp.refusal($$aas(until => '20000-01-01')$$);
select pg_temp.refusal($$markers(since => '2026-01-02 00:00+00', until => '2026-01-01 00:00+00')$$);

-- buckets
select pg_temp.refusal($$aas(bucket => '0')$$);
select pg_temp.refusal($$timeline(bucket => '-1 minute')$$);
select pg_temp.refusal($$aas(bucket => '1 month')$$);
select pg_temp.refusal($$timeline(since => '2026-01-01 00:00+00', until => '2026-01-31 00:00+00', bucket => '1 second')$$);

-- numbers of rows
select pg_temp.refusal($$top('wait_event', n => 0)$$);
select pg_temp.refusal($$samples(n => -1)$$);
select pg_temp.refusal($$timeline(by => 'state', n => 0)$$);
select pg_temp.refusal($$chart(n => 0)$$);
select pg_temp.refusal($$chart(width => 0)$$);

-- names
select pg_temp.refusal($$top('wait')$$);
select pg_temp.refusal($$top('wait_event', by => 'user')$$);
select pg_temp.refusal($$timeline(by => 'nothing')$$);
select pg_temp.refusal($$top('wait_event', order_by => 'size')$$);
select pg_temp.refusal($$aas(scope => 'everything')$$);
select pg_temp.refusal($$aas(tz => 'Mars/Olympus')$$);
select line from pg_temp.refusal($$aas(node => 'ffffffffffffffff')$$) line where line not like 'hint: Available are all, %00000000000000e1%';
select line from pg_temp.refusal($$status(node => 'this one')$$) line where line not like 'hint: Available are all, %00000000000000e1%';

-- filters that the scope leaves out
select pg_temp.refusal($$aas(state => 'idle in transaction')$$);
select pg_temp.refusal($$top('username', category => 'background')$$);
select pg_temp.refusal($$aas(wait_event => 'ClientRead')$$);
select pg_temp.refusal($$periods(state => 'idle')$$);

-- an event that two classes have
select pg_temp.refusal($$aas(since => '2026-01-05 12:00+00', until => '2026-01-05 12:01+00', node => '00000000000000e1', wait_event => 'Twofold')$$);

-- what is missing
select pg_temp.refusal($$top(null)$$);
select pg_temp.refusal($$aas(since => 'when the cows come home')$$);

-- the connection is none the worse for it
select count(*) from tacho.markers(since => '2026-01-05 12:00+00', until => '2026-01-05 12:01+00', node => :'node') where kind = 'none';
drop extension tacho;
