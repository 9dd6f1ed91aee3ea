\set roll random(1, 100)
\set hot random(1, 1000)
\set cold random(1, 1000000000000)
\if :roll <= 50
WITH hot:hot AS (SELECT 1) SELECT FROM hot:hot;
\else
WITH cold:cold AS (SELECT 1) SELECT FROM cold:cold;
\endif
