\set h1 random(1, 1000)
\set h2 random(1, 1000)
\set h3 random(1, 1000)
\set h4 random(1, 1000)
\set h5 random(1, 1000)
\set h6 random(1, 1000)
\set h7 random(1, 1000)
\set h8 random(1, 1000)
\set h9 random(1, 1000)
\set h10 random(1, 1000)
\set h11 random(1, 1000)
\set h12 random(1, 1000)
\set h13 random(1, 1000)
\set h14 random(1, 1000)
\set h15 random(1, 1000)
\set h16 random(1, 1000)
\set c1 random(1, 100000)
\set c2 random(1, 100000)
\set c3 random(1, 100000)
\set c4 random(1, 100000)
WITH hot:h1 AS (SELECT 1) SELECT FROM hot:h1 \;
WITH hot:h2 AS (SELECT 1) SELECT FROM hot:h2 \;
WITH hot:h3 AS (SELECT 1) SELECT FROM hot:h3 \;
WITH hot:h4 AS (SELECT 1) SELECT FROM hot:h4 \;
WITH cold:c1 AS (SELECT 1) SELECT FROM cold:c1 \;
WITH hot:h5 AS (SELECT 1) SELECT FROM hot:h5 \;
WITH hot:h6 AS (SELECT 1) SELECT FROM hot:h6 \;
WITH hot:h7 AS (SELECT 1) SELECT FROM hot:h7 \;
WITH hot:h8 AS (SELECT 1) SELECT FROM hot:h8 \;
WITH cold:c2 AS (SELECT 1) SELECT FROM cold:c2 \;
WITH hot:h9 AS (SELECT 1) SELECT FROM hot:h9 \;
WITH hot:h10 AS (SELECT 1) SELECT FROM hot:h10 \;
WITH hot:h11 AS (SELECT 1) SELECT FROM hot:h11 \;
WITH hot:h12 AS (SELECT 1) SELECT FROM hot:h12 \;
WITH cold:c3 AS (SELECT 1) SELECT FROM cold:c3 \;
WITH hot:h13 AS (SELECT 1) SELECT FROM hot:h13 \;
WITH hot:h14 AS (SELECT 1) SELECT FROM hot:h14 \;
WITH hot:h15 AS (SELECT 1) SELECT FROM hot:h15 \;
WITH hot:h16 AS (SELECT 1) SELECT FROM hot:h16 \;
WITH cold:c4 AS (SELECT 1) SELECT FROM cold:c4;
