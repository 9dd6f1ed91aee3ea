\set roll random(1, 500000)
\set hot random(1, 4950)
\set cold random(1, 1000000000)
\if :roll < 500000
WITH hot:hot AS (SELECT 1) SELECT FROM hot:hot;
\else
WITH cold:cold AS (SELECT 1) SELECT FROM cold:cold;
\endif
