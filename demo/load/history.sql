-- A customer's latest orders. With the index on (customer, ordered_at) twenty
-- rows are read; without it, all of them.
\set who random(1, 49999)
select id, item_id, ordered_at
from orders
where customer = 'customer ' || :who
order by ordered_at desc
limit 20;
