-- A customer's page: twenty orders from anywhere in the table.
\set first random(1, 1199000)
select id, item_id, ordered_at
from orders
where id in (:first, :first + 40, :first + 80, :first + 120, :first + 160,
             :first + 200, :first + 240, :first + 280, :first + 320, :first + 360)
order by id;
