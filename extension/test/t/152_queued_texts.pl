# Some sessions wait for a lock before their statement has a query identifier, such as
# readers behind a queued ALTER TABLE. Their texts have no constants.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoLocks qw(session wait_until_locked);
use TachoStatus qw(wait_until_written);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('queued_texts',
	interval => '50ms',
	conf => 'track_activity_query_size = 200');
$node->safe_psql('postgres', q{
CREATE TABLE t (id int, name text);
CREATE ROLE app LOGIN;
GRANT SELECT ON t TO app;
GRANT EXECUTE ON FUNCTION tacho.samples TO app;
CREATE ROLE reader LOGIN});

my @queued = (
	reader => q{SELECT id FROM t WHERE name = 's3cret-1' AND id = 1987654321},
	app => q{SELECT id FROM t WHERE name = 's3cret-1' AND id = 1987654321},
	password => q{ALTER ROLE reader PASSWORD 's3cret-3' \; SELECT * FROM t},
	doubt => q{SELECT name FROM t WHERE name = '\' AND name <> 's3cret-4'},
	cut => q{SELECT id FROM t WHERE name = '} . 's3cret-5 ' x 30 . q{'},
	nothing => q{TABLE t},);
my %text = (
	reader => 'SELECT id FROM t WHERE name = $1 AND id = $2;',
	app => 'SELECT id FROM t WHERE name = $1 AND id = $2;',
	password => 'ALTER ROLE reader PASSWORD $1 ; SELECT * FROM t;',
	doubt => "SELECT name FROM t WHERE name = \$1\xe2\x80\xa6",
	cut => "SELECT id FROM t WHERE name =\xe2\x80\xa6",
	nothing => 'TABLE t;',);

my $holder = session($node, 'holder');
$holder->run('BEGIN; SELECT FROM t');
my $alter = session($node, 'alter');
$alter->send('ALTER TABLE t ADD COLUMN x int');
wait_until_locked($node, 'alter');
my (@names, @sessions);
while (my ($name, $sql) = splice @queued, 0, 2)
{
	my $session = tacho_session($node, app => $name, $name eq 'app' ? (user => 'app') : ());
	$session->send($sql);
	push @names, $name;
	push @sessions, $session;
}
wait_until_locked($node, @names);
is( $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
	  WHERE wait_event_type = 'Lock' AND query_id IS NULL}),
	scalar @names, 'waiting readers have no identifier');
my $since = server_ms($node);
wait_for_ticks($node, 5, $since);

for my $name (@names)
{
	is( $node->safe_psql('postgres', qq{SELECT DISTINCT query_id IS NULL, query_text
		  FROM tacho.samples(since => @{[at($since)]}, application => '$name', n => NULL)}),
		"t|$text{$name}", "samples of $name");
	is( $node->safe_psql('postgres', qq{SELECT DISTINCT query_text
		  FROM tacho.sessions(since => @{[at($since)]}, application => '$name') WHERE kind = 'sampled'}),
		$text{$name}, "their sessions have texts");
}
is( $node->safe_psql('postgres', qq{SELECT query_text, level
	  FROM tacho.blocking(at => (SELECT max(sample_time) FROM tacho.samples(since => @{[at($since)]})))
	  WHERE application IN ('app', 'reader', 'nothing') ORDER BY application}),
	"$text{app}|2\n$text{nothing}|2\n$text{reader}|2", 'blocked sessions have texts');
is( $node->safe_psql('postgres', qq{SELECT DISTINCT query_text
	  FROM tacho.samples(since => @{[at($since)]}, n => NULL)
	  WHERE application = 'app'}, extra_params => [ '-U', 'app' ]),
	$text{app}, 'a role reads its own text although another role had it before');
wait_until_written($node);
is(`grep -raohE '.{0,60}(s3cret|1987654321).{0,60}' '@{[$node->data_dir]}/tacho'`,
	'', 'no constant is in the history');

$holder->run('ROLLBACK');
$_->finish for $holder, $alter, @sessions;
$node->stop;
done_testing();
