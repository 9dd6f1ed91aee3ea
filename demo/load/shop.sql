-- The shop of the demo: a table of items that every client reads, with one row that
-- they all update, and a table of orders larger than shared_buffers.
create table item (
    id   int primary key,
    name text not null,
    qty  int not null
);
insert into item
select i, 'item ' || i, 1000000
from generate_series(1, 1000) as i;

create table orders (
    id         bigint generated always as identity primary key,
    item_id    int not null,
    customer   text not null,
    ordered_at timestamptz not null,
    note       text not null
);
insert into orders (item_id, customer, ordered_at, note)
select
    1 + i % 1000,
    'customer ' || (i * 31) % 50000,
    now() - i * interval '20 seconds',
    repeat(chr(65 + i % 26), 120)
from generate_series(1, 1200000) as i;
analyze;
