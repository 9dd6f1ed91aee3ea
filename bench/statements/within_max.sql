\set n random(1, 4500)
\set a random(1, 100)
BEGIN;
WITH hot:n AS (SELECT 1) SELECT FROM hot:n;
SELECT :a;
SELECT :a + 1;
SELECT :a + 2;
COMMIT;
