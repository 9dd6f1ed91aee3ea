\set h1 random(1, 1000)
\set c1 random(1, 1000000000000)
\set h2 random(1, 1000)
\set c2 random(1, 1000000000000)
\set h3 random(1, 1000)
\set c3 random(1, 1000000000000)
\set h4 random(1, 1000)
\set c4 random(1, 1000000000000)
\set h5 random(1, 1000)
\set c5 random(1, 1000000000000)
\set h6 random(1, 1000)
\set c6 random(1, 1000000000000)
\set h7 random(1, 1000)
\set c7 random(1, 1000000000000)
\set h8 random(1, 1000)
\set c8 random(1, 1000000000000)
\set h9 random(1, 1000)
\set c9 random(1, 1000000000000)
\set h10 random(1, 1000)
\set c10 random(1, 1000000000000)
WITH hot:h1 AS (SELECT 1) SELECT FROM hot:h1 \;
WITH cold:c1 AS (SELECT 1) SELECT FROM cold:c1 \;
WITH hot:h2 AS (SELECT 1) SELECT FROM hot:h2 \;
WITH cold:c2 AS (SELECT 1) SELECT FROM cold:c2 \;
WITH hot:h3 AS (SELECT 1) SELECT FROM hot:h3 \;
WITH cold:c3 AS (SELECT 1) SELECT FROM cold:c3 \;
WITH hot:h4 AS (SELECT 1) SELECT FROM hot:h4 \;
WITH cold:c4 AS (SELECT 1) SELECT FROM cold:c4 \;
WITH hot:h5 AS (SELECT 1) SELECT FROM hot:h5 \;
WITH cold:c5 AS (SELECT 1) SELECT FROM cold:c5 \;
WITH hot:h6 AS (SELECT 1) SELECT FROM hot:h6 \;
WITH cold:c6 AS (SELECT 1) SELECT FROM cold:c6 \;
WITH hot:h7 AS (SELECT 1) SELECT FROM hot:h7 \;
WITH cold:c7 AS (SELECT 1) SELECT FROM cold:c7 \;
WITH hot:h8 AS (SELECT 1) SELECT FROM hot:h8 \;
WITH cold:c8 AS (SELECT 1) SELECT FROM cold:c8 \;
WITH hot:h9 AS (SELECT 1) SELECT FROM hot:h9 \;
WITH cold:c9 AS (SELECT 1) SELECT FROM cold:c9 \;
WITH hot:h10 AS (SELECT 1) SELECT FROM hot:h10 \;
WITH cold:c10 AS (SELECT 1) SELECT FROM cold:c10;
