# tacho.explain() prints the plan that --explain prints on the command line.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('explain');
my $tape = $node->data_dir . '/tacho';
my $json = JSON::PP->new;

# Two hours of another recorder, in a file with totals.
my $csv = "time,pid,wait_event_type,wait_event,database,username\n";
for my $hour (0 .. 1)
{
	$csv .= sprintf("2026-01-01T0%d:00:%02dZ,%d,IO,DataFileRead,shop,alice\n", $hour, $_ / 2, $_) for (0 .. 119);
}
IPC::Run::run([ "$FindBin::RealBin/../data/import.sh", $tape, 'abc' ], '<', \$csv) or die 'could not import';

# The rows of a plan in SQL, as objects. Roles see the same plans as answers.
sub plan_in_sql
{
	my ($call, $role) = @_;
	my $set = $role ? "SET ROLE $role;" : '';
	my $rows = $node->safe_psql('postgres', qq{
		SET TimeZone = 'UTC'; $set
		SELECT coalesce(json_agg(json_build_object('scan', scan, 'plan', plan,
			'period_start', to_char(period_start, 'YYYY-MM-DD"T"HH24:MI:SS'),
			'period_end', to_char(period_end, 'YYYY-MM-DD"T"HH24:MI:SS'),
			'first_tick', first_tick, 'last_tick', last_tick,
			'files', files, 'parts', parts, 'bytes', bytes, 'why', why)), '[]')
		FROM tacho.explain($call, node => '0000000000000abc')});
	return $json->decode($rows);
}

# The same plan from the command line.
sub plan_of_program
{
	my ($rows, $errors);
	IPC::Run::run([ $ENV{TACHO_PROGRAM}, @_, '--explain', '--json', '--tape', $tape, '--node=abc', '--tz=UTC' ],
		'>', \$rows, '2>', \$errors) or die $errors;
	$rows = $json->decode($rows);
	for my $row (@$rows)
	{
		s/(\.\d+)?Z$// for @$row{qw(period_start period_end)};
	}
	return $rows;
}

my @window = ("since => '2026-01-01 00:00Z', until => '2026-01-01 02:00Z'",
	'--since=2026-01-01T00:00:00Z', '--until=2026-01-01T02:00:00Z');
my @windows = (
	"since_1 => '2026-01-01 00:00Z', until_1 => '2026-01-01 01:00Z', since_2 => '2026-01-01 01:00Z', until_2 => '2026-01-01 02:00Z'",
	'--since-1=2026-01-01T00:00:00Z', '--until-1=2026-01-01T01:00:00Z',
	'--since-2=2026-01-01T01:00:00Z', '--until-2=2026-01-01T02:00:00Z');
for my $case (
	[ 'totals', q{'top'}, [], 'top' ],
	[ 'one pass', q{'top', 'pid'}, [], 'top', 'pid' ],
	[ 'one pass', q{'top', 'wait_event', by => 'pid', n => 2, order_by => 'peak'}, [],
		'top', 'wait_event', '--by=pid', '--n=2', '--order-by=peak' ],
	[ 'totals', q{'timeline', bucket => '10 minutes', tz => 'Europe/Berlin'}, [],
		'timeline', '--bucket=10m' ],
	[ 'one pass', q{'aas', database => 'shop', scope => 'all'}, [],
		'aas', '--database=shop', '--scope=all' ],
	[ 'one pass', q{'aas', by_leader => true}, [], 'aas', '--by-leader' ],
	[ 'totals', q{'compare', 'wait_event'}, \@windows, 'compare', 'wait_event' ],
	[ 'totals', q{'chart'}, [], 'chart' ])
{
	my ($plan, $call, $given, @words) = @$case;
	my ($sql, @options) = @$given ? @$given : @window;
	my $got = plan_in_sql("$call, $sql");
	is($got->[0]{plan}, $plan, "$call is read by $plan");
	is_deeply($got, plan_of_program(@words, @options), "$call has the plan of the command line") or diag(explain($got));
}

# A role that sees only its own sessions has its own plan.
$node->safe_psql('postgres', q{CREATE ROLE alice; GRANT EXECUTE ON FUNCTION tacho.explain TO alice});
is(plan_in_sql("'top', $window[0]", 'alice')->[0]{why}, 'totals have no filters',
	'a filter by the current user is in the plan');

# A function that adds up no samples reads columns.
my $samples = plan_in_sql("'samples', $window[0]");
is($samples->[0]{plan}, 'columns', 'samples are read by columns');
like($samples->[0]{why}, qr/^reads name, run, session, statement, tick, wait$/, 'the plan names the tables of samples');
is_deeply($samples, plan_of_program('samples', @window[1, 2]), 'samples() and the command line have the same plan');

# An unknown function, and an unknown argument, are errors.
for my $case (
	[ q{'horoscope'}, '42704', 'function "horoscope" does not exist' ],
	[ q{null}, '22023', 'argument "function" must not be null' ],
	[ q{'aas', 'wait_event'}, '22023', 'function "aas" has no argument "dimension"' ],
	[ q{'plan'}, '22023', 'function "plan" cannot be explained without a plan id' ],
	[ q{'compare', since => now()}, '22023', 'function "compare" has no argument "since"' ],
	[ q{'top', 'planet'}, '42704', 'dimension "planet" does not exist' ])
{
	my ($call, $sqlstate, $message) = @$case;
	my $stderr;
	$node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM tacho.explain($call)", stderr => \$stderr);
	like($stderr, qr/ERROR:  $sqlstate: $message\n.*HINT: /s, "explain($call) is refused");
}

$node->stop;
done_testing();
