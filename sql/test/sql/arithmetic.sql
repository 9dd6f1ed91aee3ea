-- Numbers are exact and rounded half away from zero.
select test.equal(tacho._round4(1, 20000)::text, '0.0001', 'half is rounded away from zero');
select test.equal(tacho._round4(-1, 20000)::text, '-0.0001', 'half is rounded away from zero below zero');
select test.equal(tacho._round4(1, 20001)::text, '0.0000', 'less than half is not');
select test.equal(tacho._round4(2, 3)::text, '0.6667', 'thirds');
select test.equal(tacho._round4(100, 6)::text, '16.6667', 'above one');
select test.equal(tacho._round4(5, 0)::text, null, 'nothing observed');
select test.equal(tacho._round4(12345678901234567890123, 1)::text, '12345678901234567890123.0000', 'no overflow');
select test.equal((tacho._p99(array[10], 60) / 100)::numeric(10, 4)::text, '4.1000', 'absent buckets are zero');
select test.equal(tacho._p99(array[10], 200)::text, '0', 'both neighbours are zero');
select test.equal(tacho._p99(array[7], 1)::text, '700', 'one bucket');
select test.equal(tacho._p99(null, 3)::text, '0', 'no bucket has rows');
select test.equal(tacho._p99(null, 0)::text, null, 'no bucket was observed');
select test.equal((select tacho._lcm(x)::text from unnest(array[60000, 59000, 58000]::numeric[]) x), '102660000', 'common multiple');
