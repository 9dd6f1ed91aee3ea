-- An analyst's question without an index: reads all orders, ten times what
-- shared_buffers holds.
select
    item_id,
    count(*) as orders,
    max(ordered_at) as latest
from orders
where customer like 'customer 1%'
group by item_id
order by orders desc
limit 10;
