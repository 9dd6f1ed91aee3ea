# A role made again under the name of a dropped one does not see what that did.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(wait_until_written);
use TachoTest qw(server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $node = tacho_cluster('recreated', interval => '50ms',
	conf => 'tacho.statements_interval = 500ms');
my $make = q{CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA tacho TO app; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO app};

# Each function, and its rows about an application.
my %tells = (
	samples => q{samples(application => '%s', n => NULL)},
	sessions => q{sessions(application => '%s', n => NULL)},
	compare => q{compare('application', since_2 => now() - interval '10 minutes', n => NULL)
		WHERE key = '%s'},
	report => q{report(since => now() - interval '10 minutes', n => NULL) r
		WHERE r::text LIKE '%%AS %s%%'},
	statements_history => q{statements_history(n => NULL) WHERE query_text LIKE '%%AS %s%%'},
);

sub told
{
	my ($function, $app, @user) = @_;
	return $node->safe_psql('postgres',
		'SELECT count(*) FROM tacho.' . sprintf($tells{$function}, $app),
		extra_params => [ map { ('-U', $_) } @user ]);
}

# Something that both kinds of history have. A machine that pauses may leave no
# tick to half a second; then it is done again.
sub work
{
	my ($app, $more) = @_;

	for (1 .. 20)
	{
		$node->safe_psql('postgres', "SELECT pg_sleep(0.5) AS $app$more",
			extra_params => [ '-U', 'app' ],
			connstr => $node->connstr('postgres') . " application_name=$app");
		wait_for_ticks($node, 1, server_ms($node));
		last if told('samples', $app) > 0;
	}
	$node->poll_query_until('postgres',
		'SELECT count(*) > 0 FROM tacho.' . sprintf($tells{statements_history}, $app))
	  or die "the statement of $app is not in the history";
	wait_until_written($node);
	return;
}

$node->safe_psql('postgres', $make);
work('first', '');
cmp_ok(told($_, 'first', 'app'), '>', 0, "$_: a role sees its own rows") for sort keys %tells;
$node->safe_psql('postgres', 'DROP OWNED BY app; DROP ROLE app');
$node->safe_psql('postgres', $make);
work('second', ', 2');
for my $function (sort keys %tells)
{
	is(told($function, 'first', 'app'), 0, "$function: the next role of that name does not see it");
	cmp_ok(told($function, 'second', 'app'), '>', 0, "$function: the new role sees its own rows");
	cmp_ok(told($function, 'first'), '>', 0, "$function: a role that may see all rows still does");
}
$node->stop;

done_testing();
