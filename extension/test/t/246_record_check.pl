# tacho-record --check tries each thing, on stock servers and on servers like a
# provider's. Exit code 3: something needed is missing.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoRecord qw(record_program run_record);

record_program();
my $node = PostgreSQL::Test::Cluster->new('check');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE EXTENSION pg_stat_statements');
my $conninfo = $node->connstr('postgres') . ' user=watcher';

# Exit code and output of a check.
sub check { my ($code, $out) = run_record('--check', @_ ? @_ : $conninfo); return ($code, $out) }
# The line of one thing, with the help below it.
sub line { my ($what) = @_; my (undef, $out) = check(); return ($out =~ /^(\w+ +\Q$what\E: .*\n(?: .*\n)?)/m)[0] // $out }
sub sql { return $node->safe_psql('postgres', $_[0]) }

# The extension exists, but its library is not loaded: compute_query_id = auto computes
# nothing.
my ($code, $out) = check();
is($code, 3, 'the check of a stock server fails');
my $preload = qr/add pg_stat_statements to shared_preload_libraries and restart the server\n/;
like($out, qr/^no   query identifiers: not computed, samples have no query: compute_query_id is "auto"\n +run: ALTER SYSTEM SET compute_query_id = on; SELECT pg_reload_conf\(\);$/m,
	'the check finds no identifiers without a library that wants them');
like($out, qr/^no   query texts: pg_stat_statements must be loaded.*\n +$preload/m, 'the check finds no texts');
like($out, qr/^no   statements: pg_stat_statements must be loaded.*\n +$preload/m, 'the check finds no counters of statements');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'\n");
$node->restart;
($code, $out) = check();
is($code, 0, 'the check succeeds with everything there') or diag($out);
unlike($out, qr/^no /m, 'the check finds nothing missing');

$node->append_conf('postgresql.conf', "compute_query_id = off\n");
$node->reload;
is(line('query identifiers'), qq{no   query identifiers: not computed, samples have no query: compute_query_id is "off"\n}
	  . "      run: ALTER SYSTEM SET compute_query_id = on; SELECT pg_reload_conf();\n", 'the check fails with identifiers switched off');
is((check())[0], 3, 'the check says that identifiers are needed');
$node->append_conf('postgresql.conf', "compute_query_id = auto\n");
$node->reload;

# An extension as an upgrade of the server leaves it.
sql(q{DROP EXTENSION pg_stat_statements; CREATE EXTENSION pg_stat_statements VERSION '1.8'});
like(line('statements'), qr/^no   statements: relation ".*pg_stat_statements_info" does not exist\n +run: ALTER EXTENSION pg_stat_statements UPDATE;$/m,
	'pg_stat_statements 1.8 has too few columns');
is((check())[0], 3, 'the check says that a newer version is needed');
sql(q{ALTER EXTENSION pg_stat_statements UPDATE TO '1.9'});
like(line('statements'), qr/^part statements: pg_stat_statements 1\.9 has fewer counters than 1\.\d\d\n +run: ALTER EXTENSION pg_stat_statements UPDATE;$/m,
	'pg_stat_statements 1.9 works, newer versions count more');
is((check())[0], 0, 'the check says that a newer version is not needed');
sql('ALTER EXTENSION pg_stat_statements UPDATE');

sql('REVOKE pg_monitor FROM watcher');
($code, $out) = check();
is($code, 3, 'the check of a role without rights fails');
like($out, qr/^no   samples: only sessions of this role; \d+ others are hidden\n +run: GRANT pg_monitor TO watcher;$/m, 'the role sees no other sessions');
like($out, qr/^no   query texts: only of this role; \d+ others are hidden\n +run: GRANT pg_read_all_stats TO watcher;$/m, 'the role sees no texts');

# A service is known by roles and functions that only it has.
$node->append_conf('postgresql.conf', "compute_query_id = off\n");
$node->reload;
foreach (
	[ 'CREATE ROLE rds_superuser', 'Amazon RDS', 'a member of rds_superuser', 'the DB parameter group' ],
	[ q{CREATE FUNCTION public.aurora_version() RETURNS text RETURN ''}, 'Amazon Aurora', 'a member of rds_superuser', 'the DB cluster parameter group' ],
	[ 'DROP ROLE rds_superuser; DROP FUNCTION aurora_version(); CREATE ROLE cloudsqlsuperuser', 'Google Cloud SQL', 'a member of cloudsqlsuperuser', 'the database flags of the instance' ],
	[ 'DROP ROLE cloudsqlsuperuser; CREATE ROLE azure_pg_admin', 'Azure Database for PostgreSQL', 'a member of azure_pg_admin', 'the server parameters' ],
	[ 'DROP ROLE azure_pg_admin; CREATE ROLE supabase_admin', 'Supabase', 'postgres', 'the settings of the service' ],
	[ 'DROP ROLE supabase_admin; CREATE ROLE neon_superuser', 'Neon', 'a member of neon_superuser', 'the settings of the service' ])
{
	my ($sql, $name, $grantor, $place) = @$_;

	sql($sql);
	($code, $out) = check();
	like($out, qr/^yes  server: PostgreSQL .*, $name$/m, "$name is recognised");
	like($out, qr/^      set compute_query_id = on in $place$/m, "the check says where $name has its settings");
	like($out, qr/^      run as $grantor: GRANT pg_monitor TO watcher;$/m, 'the check says who grants rights there');
	unlike($out, qr/ALTER SYSTEM/, 'the check does not name ALTER SYSTEM there');
}
sql('DROP ROLE neon_superuser; GRANT pg_monitor TO watcher');

# All servers of a file.
my $file = $node->basedir . '/record.toml';
sub write_file { my ($text) = @_; open my $out, '>', $file or die $!; print $out qq{root = "histories"\n$text}; close $out or die $!; return }
write_file(qq{[[server]]\nname = "a"\nconninfo = "$conninfo"\n[[server]]\nname = "b"\nconninfo = "$conninfo dbname=template1"\n});
($code, $out) = check('--config', $file);
is($code, 3, 'a check takes a file of settings');
like($out, qr/^server "a"\nyes  server: PostgreSQL .*^no   query identifiers: .*^server "b"\nyes  server: .*^no   query texts: pg_stat_statements is not in database template1$/ms,
	'the check names each server before its lines');
$node->append_conf('postgresql.conf', "compute_query_id = on\n");
$node->reload;
my ($host, $nobody) = ($node->host, PostgreSQL::Test::Cluster::get_free_port());
write_file(qq{[[server]]\nname = "gone"\nconninfo = "host=$host port=$nobody"\n[[server]]\nname = "here"\nconninfo = "$conninfo"\n});
($code, $out) = check('--config', $file);
is($code, 1, 'a server that cannot be reached fails the check');
like($out, qr/^server "gone"\nno   connection: could not connect: .*^server "here"\nyes  server: /ms, 'the check asks the other servers');

# Mistakes in a file are errors before anything is recorded.
sub refused { write_file($_[0]); my ($code, undef, $error) = run_record('--config', $file); is($code, 1, 'refused'); return $error }
like(refused(''), qr/^error: file ".*": no \[\[server\]\] is configured$/m, 'a file without servers is refused');
like(refused(qq{[[server]]\nname = "a"\nconninfo = "host=x"\nintervall = 1\n}),
	qr/server "a": unknown key "intervall", did you mean "interval"\?$/m, 'a misspelt key is named');
my $error;
($code, undef, $error) = run_record('-h', 'db', '--tape', $node->basedir . '/x');
is($code, 2, 'options of psql are refused');
like($error, qr/^error: unrecognized option "-h"\nhint: Pass the connection as one string: tacho record "host=HOST /m, 'the message has the command to run instead');
($code, undef, $error) = run_record($conninfo, '--tape', $node->basedir . '/x', '--interval', '1d');
is($code, 2, 'an interval out of range is refused');
like($error, qr/invalid value '1d' for '--interval <TIME>': must be between 100 ms and 60000 ms/, 'the message has the limits of the interval');

done_testing();
