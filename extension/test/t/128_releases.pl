# A new value of the tag "release" is a marker. The first release of an application is
# none, nor is one that was there before. One role cannot fill the history with markers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(tacho_cluster tacho_session wait_for_marker wait_for_ticks server_ms);
use Test::More;

my $node = tacho_cluster('releases', interval => '20ms');

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub releases { return sql(q{SELECT detail FROM tacho.markers() WHERE kind = 'release' ORDER BY marker_time}) }

# Runs a statement with tags for some ticks, and waits until they are recorded.
sub run_release
{
	my ($tags) = @_;

	sql("SELECT pg_sleep(1) /*$tags*/");
	wait_for_ticks($node, 2, server_ms($node));
	return;
}

sql('CREATE ROLE flood LOGIN; CREATE ROLE again LOGIN');
run_release($_) for q(application='shop',release='v1'), q(application='crm',release='7'), q(release='a');
is(releases(), '', 'the first release of an application is no marker');

run_release(q(application='shop',release='v2'));
wait_for_marker($node, 'release', 1);
is(releases(), 'v2, application shop, database postgres', 'a new release is a marker');

run_release($_) for q(application='shop',release='v1'), q(application='shop',release='v2'), q(application='shop');
run_release(q(release='b'));
wait_for_marker($node, 'release', 2);
is(releases(), "v2, application shop, database postgres\nb, database postgres", 'releases that were there before are no markers');

# a role that has a new release all the time
my $session = tacho_session($node, user => 'flood');
$session->run("SELECT pg_sleep(0.05) /*release='x$_'*/") for 1 .. 60;
$session->finish;
wait_for_ticks($node, 2, server_ms($node));
my $most = sql(q{SELECT max(n) FROM (SELECT count(*) AS n FROM tacho.markers() WHERE kind = 'release' AND detail LIKE 'x%' GROUP BY date_trunc('minute', marker_time)) m});
cmp_ok($most, '<=', 8, 'a role has at most half of the markers of a minute');
cmp_ok($most, '>=', 1, 'some releases of the flood have markers');

# more releases than the sampler has places for: old ones that come back are no markers
$session = tacho_session($node, user => 'flood');
$session->run("SELECT pg_sleep(0.05) /*release='x$_'*/") for 61 .. 320;
$session->finish;
wait_for_ticks($node, 2, server_ms($node));
my $all = releases();
$session = tacho_session($node, user => 'again');
$session->run("SELECT pg_sleep(0.05) /*release='x$_'*/") for 1 .. 20;
$session->finish;
wait_for_ticks($node, 2, server_ms($node));
is(releases(), $all, 'releases that have lost their places are no markers when they come back');

# Earlier, a release lost its marker if its hash had the last 16 bits of one that had lost
# its place.
my $value = sql(q{
	WITH h AS (SELECT oid::int8 AS database FROM pg_database WHERE datname = 'postgres'),
		old AS (SELECT hashtextextended('', database) * 31::numeric + hashtextextended('x1', 0) AS hash FROM h)
	SELECT 'r' || n FROM h, old, generate_series(1, 1000000) n
	WHERE (hashtextextended('shop', database) * 31::numeric + hashtextextended('r' || n, 0) - old.hash) % 65536 = 0
	LIMIT 1});
run_release($_) for q(application='shop',release='v3'), "application='shop',release='$value'";
wait_for_marker($node, 'release', 1 + split /\n/, $all);
is(releases(), "$all\n$value, application shop, database postgres", 'a new release that resembles a forgotten one is a marker');

$node->stop;
done_testing();
