-- Sums of counters by line of the answer and bucket.
select {line}, idiv(middle - {origin}, {width}) as bucket, {sums}
from entries as e
where middle >= {since} and middle < {until} and {conditions}
group by 1, 2, 3, 4, 5, 6, 7
