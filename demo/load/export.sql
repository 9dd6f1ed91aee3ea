-- An export, customer by customer: the orders of a customer lie all over the
-- table, so nearly every row is a read of a block of its own.
\set first random(10000, 49999)
select
    count(*) as orders,
    max(length(note)) as longest
from (
    select note
    from orders
    where customer >= 'customer ' || :first
    order by customer, ordered_at
    limit 20000
) as page;
