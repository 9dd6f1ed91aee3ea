\set n random(1, 4950)
WITH hot:n AS (SELECT 1) SELECT FROM hot:n;
