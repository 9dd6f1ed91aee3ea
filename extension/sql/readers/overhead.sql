create function tacho._overhead(
	out metric text,
	out value numeric,
	out unit text
)
returns setof record
language c volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_overhead';

comment on function tacho._overhead is
'The rows of overhead() without shared memory.';


create function tacho.overhead()
returns table (
	metric text,
	value numeric,
	unit text
)
language sql volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
begin atomic
	select o.metric, o.value, o.unit
		from tacho._overhead() o
	union all
	select 'shared_memory: ' || a.name, a.allocated_size, 'bytes'
		from pg_catalog.pg_shmem_allocations a
		where a.name like 'tacho%';
end;

comment on function tacho.overhead is
'The current cost of tacho itself: CPU time of the sampler and the writer since the sampler started, and projected to an hour. Also CPU time of a tick (quantiles are exact to a fifth), memory, and the bytes sent to the writer, written to disk and kept. NULL means not known. Example: select * from tacho.overhead();';
