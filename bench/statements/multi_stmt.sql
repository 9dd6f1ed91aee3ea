\set n random(1, 1000)
BEGIN;
SELECT 1;
\sleep 500 us
WITH hot:n AS (SELECT 1) SELECT FROM hot:n;
\sleep 500 us
SELECT 1, 2;
\sleep 500 us
SELECT 1, 2, 3;
COMMIT;
