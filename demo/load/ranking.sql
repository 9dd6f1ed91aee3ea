-- The place of each order among all others, which needs all of them sorted.
select max(place)
from (
    select row_number() over (order by note, ordered_at) as place
    from orders
) as ranked;
