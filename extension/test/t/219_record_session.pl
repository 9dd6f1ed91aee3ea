# tacho-record where settings change how a server shows values: what is recorded is
# the same, whether a role had them before or they change while it records.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoLocks qw(session);
use TachoRecord qw(ask record record_program ticks wait_until);

record_program();
my $node = PostgreSQL::Test::Cluster->new('session');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE plain LOGIN;
	CREATE ROLE other LOGIN;
	GRANT pg_monitor TO plain, other;
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t VALUES (1, 0);
	SELECT count(*) FROM t});
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# Before 17 pg_stat_statements does not have the start time of an entry.
$node->safe_psql('postgres', q{
	ALTER FUNCTION pg_stat_statements(boolean) RENAME TO raw;
	CREATE VIEW shape AS SELECT *, now() AS stats_since FROM raw(false);
	CREATE FUNCTION pg_stat_statements(showtext boolean) RETURNS SETOF shape LANGUAGE sql AS
		$$SELECT *, '2026-01-01 00:00+00'::timestamptz FROM public.raw(showtext)$$}) if $version < 170000;

my ($locale) = grep { /^(de|fr|ja|sv)_/ } split /\n/, `locale -a 2>/dev/null`;
$locale //= 'POSIX';
my @settings = (
	[ TimeZone => 'Asia/Kathmandu' ],
	[ DateStyle => 'SQL, DMY' ],
	[ IntervalStyle => 'sql_standard' ],
	[ extra_float_digits => -15 ],
	[ bytea_output => 'escape' ],
	[ xmlbinary => 'hex' ],
	[ client_encoding => 'LATIN1' ],
	[ quote_all_identifiers => 'on' ],
	[ standard_conforming_strings => 'off' ],
	[ array_nulls => 'off' ],
	[ transform_null_equals => 'on' ],
	map { [ "lc_$_" => $locale ] } qw(messages monetary numeric time));
# 19 has no other strings.
@settings = grep { $_->[0] ne 'standard_conforming_strings' } @settings if $version >= 190000;
my %tape = map { $_ => $node->basedir . "/$_" } qw(plain other);
$node->safe_psql('postgres', "ALTER ROLE other SET $_->[0] = '$_->[1]'") for @settings;
$node->safe_psql('postgres', "ALTER ROLE other SET $_") for 'default_transaction_isolation = serializable',
  'default_transaction_read_only = on', 'default_transaction_deferrable = on';
my $sleeper = session($node, 's_sleeper');
$sleeper->send('BEGIN; SELECT pg_sleep(600)');
my %recorder = map {
	$_ => record($node->connstr('postgres') . " user=$_", $tape{$_}, args => [ '--statements-interval', 1000 ])
} qw(plain other);

# A statement in the history, and in pg_stat_statements. It is found by its identifier: the
# recorder reads texts less often if the server takes long to send them.
sub recorded
{
	my ($tape, $text) = @_;
	my $id = $node->safe_psql('postgres', "SELECT max(queryid) FROM pg_stat_statements WHERE query = '$text'");
	my ($row) = grep { ($_->{query_id} // '') eq $id }
	  ask($tape, 'statements-history', '--since', '1h', '--n', 'all');

	return $row ? sprintf '%d calls, %d rows, %.2f ms', @$row{qw(calls rows total_exec_time)} : 'nothing';
}

sub counted
{
	my ($text) = @_;

	return $node->safe_psql('postgres', qq{
		SELECT format('%s calls, %s rows, %s ms', calls, rows, round((total_exec_time * 100)::numeric) / 100)
		FROM pg_stat_statements WHERE query = '$text'}) =~ s/(\.\d\d)0+ ms/$1 ms/r;
}

# This pass learns the earlier counts, so that everything after it is counted.
for my $tape (values %tape)
{
	wait_until("a pass in $tape", sub { ask($tape, 'statements-history', '--since', '1h') > 0 });
}
my $text = 'SELECT v FROM t WHERE id = $1';
my $calls = 0;
sub run
{
	my ($times) = @_;

	$node->safe_psql('postgres', 'SELECT v FROM t WHERE id = 1;' x $times);
	$calls += $times;
	return;
}

sub same
{
	my ($what) = @_;

	for my $tape (values %tape)
	{
		eval { wait_until("calls in $tape", sub { recorded($tape, $text) =~ /^(\d+) calls/ && $1 >= $calls }) }
		  or die $@, "$what, $calls calls: recorded ", recorded($tape, $text), ', counted ', counted($text), "\n",
		  $recorder{ $tape eq $tape{plain} ? 'plain' : 'other' }->log;
	}
	is(recorded($tape{$_}, $text), counted($text), "$what: $_") for sort keys %tape;
	return;
}

run(7);
same('settings of the role');
for my $setting (@settings)
{
	my ($name, $value) = @$setting;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->reload;
	run(3);
	same("$name changes");
	$node->safe_psql('postgres', "ALTER SYSTEM RESET $name");
	$node->reload;
}

# No setting makes the recorder count old calls again, and times are the same.
my $before = 'SELECT count(*) FROM t';
is(recorded($tape{$_}, $before), 'nothing', "executions from before are not counted: $_") for sort keys %tape;
my $start = $node->safe_psql('postgres', q{
	SELECT to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
	FROM pg_stat_activity WHERE application_name = 's_sleeper'});
for my $name (sort keys %tape)
{
	my ($sample) = ask($tape{$name}, 'samples', '--since', '1m', '--application', 's_sleeper', '--n', 1);
	is($sample->{xact_start} =~ s{(?:\.(\d+))?Z$}{'.' . substr(($1 // '') . '000', 0, 3) . 'Z'}er, $start, "$name: times come from the server");
	is($recorder{$name}->end('TERM'), 0, "$name: the recorder ends");
}

done_testing();
