# Runs every query of the dashboards: PromQL in a Prometheus that scrapes tacho-web, SQL
# in the extension and in the SQL edition, as a role that may only read. promtool
# accepts the rules and runs their tests.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoLocks qw(session wait_until_locked);
use TachoMetrics qw(checked metric_programs prometheus query start_web);
use TachoRecord qw(wait_until);
use TachoStatus qw(wait_until_written);
use TachoTest qw(tacho_cluster);
use Test::More;

metric_programs();
my $root = "$FindBin::RealBin/../../..";
my $dashboards = "$root/dashboards";
my @now = gmtime;
my %dashboard = map { $_ => decode_json(slurp_file("$dashboards/$_.json")) }
  qw(tacho-prometheus tacho-postgresql);

# The queries of a dashboard with the titles of their panels.
sub queries
{
	my ($name, $key) = @_;
	my $of = $dashboard{$name};
	my @targets = map { my $panel = $_; map { [ $panel->{title}, $_->{$key} ] } @{ $panel->{targets} } } @{ $of->{panels} };

	return (@targets, map { [ $_->{name}, $_->{target}{$key} ] } @{ $of->{annotations}{list} });
}

is(system("$dashboards/make.pl", '--check'), 0, 'the dashboards are what their script makes');
is_deeply([ map { $dashboard{$_}{uid} } sort keys %dashboard ], [ sort keys %dashboard ],
	'the UIDs of dashboards are their names');
my ($code, $said) = checked('', 'check', 'rules', "$dashboards/tacho.rules.yml");
is($code, 0, 'promtool takes the rules') or diag $said;
($code, $said) = checked('', 'test', 'rules', "$dashboards/tacho.rules.test.yml");
is($code, 0, 'the rules pass their own tests') or diag $said;

my $node = tacho_cluster('dashboards',
	init => { allows_streaming => 'logical' },
	conf => "tacho.server_interval = 200ms\ntacho.statements_interval = 1s\ncompute_query_id = on\n");
if ($node->psql('postgres', q{LOAD 'libpqwalreceiver'}) != 0)
{
	note 'no queries are asked: this installation cannot stream replication';
	$node->stop;
	done_testing();
	exit;
}
$node->safe_psql('postgres', q{
	CREATE ROLE grafana LOGIN;
	GRANT pg_monitor TO grafana;
	SELECT pg_create_physical_replication_slot('left_behind', true);
	CREATE TABLE t(id int PRIMARY KEY);
	INSERT INTO t VALUES (1)});
$node->backup('standby');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$standby->start;
my ($holder, $waiter) = map { session($node, $_) } qw(holder waiter);
$holder->run('BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE');
$waiter->send('UPDATE t SET id = 1');
wait_until_locked($node, 'waiter');

my $web = start_web($node->data_dir . '/tacho', PostgreSQL::Test::Cluster::get_free_port());
my $prometheus = prometheus($web, rules => "$dashboards/tacho.rules.yml");
wait_until('the rules have data',
	sub { @{ query($prometheus, 'tacho:load:avg5m') } && @{ query($prometheus, 'tacho_replica_replay_lag_bytes') } });

# an expression of a dashboard as Grafana sends it
sub sent
{
	my ($expression) = @_;
	my %value = (server => 'shop', __rate_interval => '10s');

	return $expression =~ s/\$(\w+)/$value{$1} \/\/ die "\$$1 in $expression"/ger;
}

for (queries('tacho-prometheus', 'expr'))
{
	my ($title, $expression) = @$_;
	wait_until("$title: $expression", sub { @{ query($prometheus, sent($expression)) } });
	pass("$title: $expression");
}
my %known = map { $_ => 1 } $web->get('/metrics')->{content} =~ /^# TYPE (\w+)/mg;
my $rules = slurp_file("$dashboards/tacho.rules.yml");
my %named = map { $_ => 1 }
  map { /\b(tacho_\w+)/g } $rules, map { $_->[1] } queries('tacho-prometheus', 'expr');
is(join(' ', grep { !$known{$_} } sort keys %named), '', 'every metric that is named exists');

# SQL as Grafana sends it; filters are empty, or values of a session
sub sql_sent
{
	my ($sql, $since, %given) = @_;

	$sql =~ s/\$__timeFrom\(\)/'$since'/g;
	$sql =~ s/\$__timeTo\(\)/'2100-01-01T00:00:00Z'/g;
	$sql =~ s/\$__interval\b/1m/g;
	$sql =~ s/\$\{(\w+):sqlstring\}/"'" . ($given{$1} \/\/ '') . "'"/ge;
	die $sql if $sql =~ /\$/;
	return $sql;
}

# Titles of panels whose SQL fails or returns no rows.
sub failing
{
	my ($connection, $since, %given) = @_;
	my @failing;

	for (queries('tacho-postgresql', 'rawSql'))
	{
		my ($title, $sql) = @$_;
		my ($stdout, $stderr) = ('', '');
		$node->psql($connection->{db}, sql_sent($sql, $since, %given), stdout => \$stdout,
			stderr => \$stderr, extra_params => [ '-U', $connection->{role} ]);
		push @failing, $stderr =~ /ERROR/ ? "$title: $stderr" : $title if $stdout eq '';
	}
	return join "\n", sort @failing;
}

my $day = sprintf '%d-%02d-%02dT%02d:00:00Z', $now[5] + 1900, $now[4] + 1, @now[ 3, 2 ];
my $extension = { db => 'postgres', role => 'grafana' };
wait_until_written($node);
is(failing($extension, $day), '', 'every query of SQL is answered');
my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'waiter'");
my $sql = (grep { $_->[0] eq 'Samples' } queries('tacho-postgresql', 'rawSql'))[0][1];
$sql = sql_sent($sql, $day, pid => $pid, wait_event_type => 'Lock');
is($node->safe_psql('postgres', "SELECT DISTINCT application, wait_event FROM ($sql) s"),
	'waiter|transactionid', 'filters lead down to the session');

$prometheus->stop;
$web->stop;

$node->safe_psql('postgres', 'CREATE DATABASE edition');
$node->psql('edition', "\\i $root/sql/tacho.sql", on_error_die => 1);
$node->safe_psql('edition', "SELECT tacho.grant_reader('grafana')");
$node->safe_psql('edition', 'UPDATE tacho.setting SET enabled = true');
$node->poll_query_until('edition', 'SELECT tacho.take_sample()', 'ok') or die 'no sample';
is(failing({ db => 'edition', role => 'grafana' }, $day), join("\n",
		'CPU time of the host, ms a second', 'Events', 'Log kept for slots',
		'Transactions a second', 'What statements cost', 'Write-ahead log'),
	'no query fails on the SQL edition, which has no measurements of the server and no statistics here');

my ($metrics) = run_command([ $ENV{TACHO_PROGRAM}, 'metrics', '--dsn',
		'edition=' . $node->connstr('edition') . ' user=grafana' ]);
like($metrics, qr/^tacho_readable\{server="edition"\} 1/m, 'metrics of the SQL edition are read');
like($metrics, qr/^tacho_last_tick_timestamp_seconds\{server="edition"\} \d/m, 'the metrics of the SQL edition have its last tick');

$holder->run('ROLLBACK');
$_->finish for $holder, $waiter;
$standby->stop;
$node->stop;
done_testing();
