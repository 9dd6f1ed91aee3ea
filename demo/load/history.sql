-- A customer's latest orders. With the index on (customer, ordered_at) it reads twenty
-- rows; without it, the whole table.
\set who random(1, 49999)
select id, item_id, ordered_at
from orders
where customer = 'customer ' || :who
order by ordered_at desc
limit 20;
