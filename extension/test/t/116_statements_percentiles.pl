# Percentiles of tacho.statements beside the exact ones: executions of durations
# that a test library makes up, from a microsecond to hours, are counted as hooks
# count them.

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $extension = "$FindBin::RealBin/../..";
my $library = PostgreSQL::Test::Utils::tempdir() . '/durations.so';

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -D_GNU_SOURCE -O1 -g -fPIC -shared -Wl,-Bsymbolic -o $library"
	  . " -I '" . config('--includedir-server') . "' -I '$extension/src' '$extension/test/unit/durations.c'") == 0
  or die 'could not build the library that makes up durations';

my $node = PostgreSQL::Test::Cluster->new('percentiles');
$node->init;
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql("create function duration_percentiles(float8[], boolean) returns float8[] strict language c as '$library'");

# 19 executions of 9 s and one of 90 s: neither is near 49 s
my $issue = "array_fill(9000::float8, array[19]) || 90000::float8";
is(sql("select round(p[1]::numeric, 4), round(p[2]::numeric, 4), round(p[3]::numeric, 4) from duration_percentiles($issue, true) p"),
	'10300.3855|12020.9853|90000.0000', 'percentiles of 19 executions of 9 s and one of 90 s end at the extremes');
is(sql("select round(p[1]::numeric, 4), round(p[2]::numeric, 4), round(p[3]::numeric, 4) from duration_percentiles($issue, false) p"),
	'10300.3855|12020.9853|94714.9312', 'percentiles end at classes when the extremes are not of all executions');

# one execution is each percentile of itself, without extremes too
is(sql("select round(p[1]::numeric, 4), round(p[2]::numeric, 4), round(p[3]::numeric, 4) from duration_percentiles('{294}', false) p"),
	'294.0000|294.0000|294.0000', 'percentiles of one execution of 294 ms are exact');

# hundreds of statements whose durations are spread over up to ten orders of magnitude
my $made = q{
	select setseed(0.32);
	create table made as
		select array_agg(exp(low + random() * width) order by i) as ms
			from (select s, i, ln(0.001) + s % 7 * 2.2 as low, 0.5 + s % 11 as width
					from generate_series(1, 400) s, generate_series(1, 10 + s % 90) i) d
			group by s;
	create view told as
		select ms, p, share, p[place] as estimate,
				(select percentile_disc(share) within group (order by d) from unnest(ms) d) as exact,
				(select min(d) from unnest(ms) d) as least, (select max(d) from unnest(ms) d) as most
			from made, duration_percentiles(ms, true) p,
				(values (1, 0.50), (2, 0.95), (3, 0.99)) as v(place, share);
};
sql($made);
cmp_ok(sql('select max(d) from made, unnest(ms) d'), '>', 2.4 * 3600e3, 'some executions take more than 2.4 hours');
is(sql('select count(*) from told where estimate > most or estimate < least'), 0,
	'no percentile is beyond the extremes');
is(sql(q{select count(*) from told where exact between 0.002 and 17179869 and estimate / exact not between 0.5 and 2}),
	0, 'each percentile is less than a factor of two off');
cmp_ok(sql('select count(*) from told where exact between 60e3 and 17179869'), '>', 100, 'the comparison has percentiles of minutes and hours');
is(sql(q{select count(*) from (select distinct on (ms) * from told) t
	where (select sum(n) from unnest(p[4:]) n) <> array_length(ms, 1)
		or exists (select from unnest(p[4:]) with ordinality c(n, class)
			where n <> (select count(*) from unnest(ms) d
				where (class = 1 or d * 1000 >= power(2, class - 1)) and (class = 35 or d * 1000 < power(2, class))))}),
	0, 'the array of the view counts each execution in its class');

$node->stop;
done_testing();
