-- The last value of a sensor, looked for in every partition.
\set sensor random(1, 1000)
select max(value) from reading where sensor = :sensor;
