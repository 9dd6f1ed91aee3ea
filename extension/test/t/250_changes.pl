# tacho.changes() names what caused an incident and when, to the second. Each incident
# has three innocent changes around it; one of them is nearer to the begin of the effect
# than the cause.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TachoStatements qw(pgbench_script);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;
use Time::HiRes qw(sleep);

# Seconds of load before the cause and after it.
use constant { BEFORE => 12, AFTER => 10 };

my $node = tacho_cluster('changes', conf => "tacho.statements_interval = 1s\njit = off\nmax_parallel_workers_per_gather = 0\nshared_buffers = 64MB");
sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(q{CREATE TABLE orders AS SELECT n AS id, n % 5000 AS customer, n % 97 AS amount, repeat('x', 40) AS note FROM generate_series(1, 400000) n;
	CREATE INDEX orders_customer ON orders(customer);
	CREATE TABLE items(id int, colour int);
	CREATE INDEX items_colour ON items(colour);
	CREATE TABLE news(id int);
	CREATE ROLE deploy SUPERUSER LOGIN;
	VACUUM ANALYZE orders});
my $deploy = tacho_session($node, app => 'migrate', user => 'deploy');

# Load of some clients by a script, $per_second transactions in all.
sub load
{
	my ($name, $clients, $per_second, $script) = @_;
	my $path = pgbench_script($node, $name, $script);
	local $ENV{PGAPPNAME} = 'shop';
	my ($in, $out) = ('', '');
	return IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $path,
			'-c', $clients, '-R', $per_second, '-T', 600, 'postgres' ], '<', \$in, '>', \$out, '2>&1');
}

# Runs an incident: innocent changes, the cause, a nearer innocent change. Returns the
# first finding as "rule|key|within|application": within is true if the finding's
# time lies between the begin and the end of the cause, or a second around them.
sub incident
{
	my ($load, %does) = @_;

	sleep(BEFORE - 4);
	$_->() foreach @{ $does{early} };
	sleep(4);
	my $begin = server_ms($node);
	$does{cause}->();
	my $end = server_ms($node);
	$does{near}->();
	sleep(AFTER);
	my $until = server_ms($node);
	$_->kill_kill foreach @$load;
	wait_for_ticks($node, 25, $until);
	my ($since, $last) = (at($begin - 2000), at($until));
	my ($from, $to) = (at($begin - 1000), at($end + 1000));
	my $answer = qq{tacho.changes(since => $since, until => $last, n => 3)};
	my $found = sql(qq{SELECT concat_ws('|', rule, key, started BETWEEN $from AND $to, application)
		FROM $answer WHERE kind <> 'effect' ORDER BY rank LIMIT 1});
	note(sql(qq{SELECT rank, kind, rule, dimension, key, started, difference, pct, explanation FROM $answer ORDER BY rank}));
	is(sql(qq{SELECT md5(string_agg(c::text, E'\n' ORDER BY rank)) FROM $answer c}),
		sql(qq{SELECT md5(string_agg(c::text, E'\n' ORDER BY rank)) FROM $answer c}), '... the same window twice is the same answer');
	is(sql(qq{SELECT string_agg(DISTINCT sums, ' ') FROM (
		SELECT concat_ws('|', sum(before), sum(after), sum(difference), sum(pct)) AS sums
		  FROM $answer WHERE kind = 'effect' GROUP BY dimension) d}) =~ tr/ //, 0, '... each dimension adds up to the same');
	return $found;
}

# An index is dropped. Nearer in time is a change of another table; there are an index
# of another table and a setting before.
my $lookup = "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n";
is(incident([ load('lookup', 4, 40, $lookup) ],
		early => [
			sub { $deploy->run('DROP INDEX items_colour') },
			sub { sql($_) foreach q{ALTER SYSTEM SET log_min_duration_statement = '5s'}, 'SELECT pg_reload_conf()' }
		],
		cause => sub { $deploy->run('DROP INDEX orders_customer') },
		near => sub { $deploy->run('ALTER TABLE news ADD COLUMN title text') }),
	'index dropped|orders_customer|t|migrate', 'an index is dropped');
done_testing();
