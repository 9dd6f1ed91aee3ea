-- A text of each of some keys, the earliest that is known.
select key, query_text
from (
  select as_text({column}) as key, query_text,
    row_number() over (partition by {column} order by hour, server) as place
  from texts where query_text is not null and as_text({column}) in ({keys})
) as known
where place = 1
