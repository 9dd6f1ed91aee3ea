\set roll random(1, 100)
\set first random(1, 10)
\set second random(1, 50)
\set third random(1, 500)
\set fourth random(1, 10000)
\if :roll <= 50
WITH hot:first AS (SELECT 1) SELECT FROM hot:first;
\elif :roll <= 80
WITH second:second AS (SELECT 1) SELECT FROM second:second;
\elif :roll <= 95
WITH third:third AS (SELECT 1) SELECT FROM third:third;
\else
WITH fourth:fourth AS (SELECT 1) SELECT FROM fourth:fourth;
\endif
