\set n random(1, 9900)
WITH hot:n AS (SELECT 1) SELECT FROM hot:n;
