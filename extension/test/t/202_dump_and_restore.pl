# Dumps of a database with the extension can be restored, whichever role owns its
# objects then. If another role made the schema, the extension refuses to be installed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use TachoTest qw(tacho_cluster);
use Test::More;

our $node = tacho_cluster('dumped');
my $dir = $node->basedir;
my $bootstrap = $node->safe_psql('postgres', 'SELECT rolname FROM pg_roles WHERE oid = 10');

# Output of a shell command; PGHOST and PGPORT are set for a node.
sub shell
{
	my ($command, $server) = (@_, $node);
	local @ENV{qw(PGHOST PGPORT)} = ($server->host, $server->port);
	my $said = '';
	IPC::Run::run([ 'bash', '-o', 'pipefail', '-c', $command ], '>&', \$said);
	return $? ? "ended with $?: $said" : $said;
}

sub sql
{
	my ($db, $statements) = @_;
	return $node->safe_psql($db, $statements);
}

# A superuser makes the extension and leaves; another one loses the attribute.
sql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE analyst; CREATE DATABASE reassigned; CREATE DATABASE demoted');
for my $db ('reassigned', 'demoted')
{
	sql('postgres', "CREATE ROLE dba_$db SUPERUSER LOGIN; ALTER DATABASE $db OWNER TO app");
	my $made = shell(qq{psql -Xq -v ON_ERROR_STOP=1 -U dba_$db -d $db <<-END
		CREATE EXTENSION tacho;
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO analyst;
		CREATE SCHEMA of_app AUTHORIZATION app;
		CREATE VIEW of_app.load AS SELECT * FROM tacho.periods();
		ALTER VIEW of_app.load OWNER TO app;
	END});
	is($made, '', "$db: the objects are made");
}
sql('reassigned', 'REASSIGN OWNED BY dba_reassigned TO app; DROP OWNED BY dba_reassigned');
sql('postgres', 'DROP ROLE dba_reassigned; ALTER ROLE dba_demoted NOSUPERUSER');

# The transaction that makes the extension goes on as the role that began it.
sql('postgres', 'CREATE ROLE dba SUPERUSER LOGIN; CREATE ROLE chosen SUPERUSER; CREATE DATABASE going_on');
my $after = 'CREATE EXTENSION tacho; SELECT current_user, session_user, current_setting($$role$$); CREATE TABLE made(); SELECT tableowner FROM pg_tables WHERE tablename = $$made$$; ROLLBACK';
is(shell(qq{psql -XqAt -U dba -d going_on -c 'BEGIN; $after'}), "dba|dba|none\ndba\n", 'the role after CREATE EXTENSION is the one before');
is(shell(qq{psql -XqAt -U dba -d going_on -c 'BEGIN; SET LOCAL ROLE chosen; $after'}), "chosen|dba|chosen\nchosen\n", 'a role that SET ROLE has chosen stays');
is(shell(qq{psql -XqAt -U dba -d going_on -c 'SET ROLE chosen; CREATE EXTENSION tacho; SELECT current_user'}), "chosen\n", 'a role that the session has chosen stays');
sql('postgres', 'CREATE ROLE operator LOGIN IN ROLE dba; CREATE DATABASE refused');
like(shell(q{psql -XqAt -U operator -d refused -c 'SET ROLE dba; CREATE EXTENSION tacho'}),
	qr/ERROR:  session role "operator" must be a superuser to make the objects of extension "tacho"\nDETAIL:  The objects are to belong to role "$bootstrap", which "operator" may not set\.\nHINT:  Connect as a superuser\.\n/,
	'a session that only SET ROLE makes a superuser is refused');
is(sql('going_on', q{SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'tacho'::regnamespace}), $bootstrap, 'the objects belong to the role that initdb made');

# A copy has the application's view with its columns, and its own extension.
sub is_whole
{
	my ($db, $way) = @_;
	is( sql($db, q{
			SELECT count(*) > 3, (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'tacho'),
				(SELECT string_agg(proowner::regrole::text, ' ') FROM (SELECT DISTINCT proowner FROM pg_proc WHERE pronamespace = 'tacho'::regnamespace) p),
				has_schema_privilege('app', 'tacho', 'create'), (SELECT count(*) FROM of_app.load) >= 0
			FROM pg_attribute WHERE attrelid = 'of_app.load'::regclass AND attnum > 0}),
		"t|$bootstrap|$bootstrap|f|t", "$way: the dump is restored, and no other role may add objects");
	return;
}

# way => [ dump command, restore command ]; %s is the database, or its copy
my %ways = (
	'plain' => [ 'pg_dump %s >dump', 'psql -Xq -o /dev/null -v ON_ERROR_STOP=1 -d %s <dump' ],
	'plain, one transaction' => [ 'pg_dump %s >dump', 'psql -Xq1 -o /dev/null -v ON_ERROR_STOP=1 -d %s <dump' ],
	'custom' => [ 'pg_dump -Fc %s >dump', 'pg_restore -e -d %s dump' ],
	'custom, one transaction' => [ 'pg_dump -Fc %s >dump', 'pg_restore -1 -d %s dump' ],
	'directory, parallel' => [ 'rm -rf parts; pg_dump -Fd -j 2 -f parts %s', 'pg_restore -e -j 2 -d %s parts' ],
	'without owners' => [ 'pg_dump -Fc -O %s >dump', 'pg_restore -e -O -d %s dump' ],
	'without rights' => [ 'pg_dump -Fc -x %s >dump', 'pg_restore -e -x -d %s dump' ],
	'cleaned before' => [ 'pg_dump -Fc %s >dump', 'pg_restore -e --clean --if-exists -d %s dump' ],
	'plain, cleaned before' => [ 'pg_dump --clean --if-exists %s >dump', 'psql -Xq1 -o /dev/null -v ON_ERROR_STOP=1 -d %s <dump' ],
	'sections' => [
		'for s in pre-data data post-data; do pg_dump --section=$s %1$s >$s.sql; done',
		'cat pre-data.sql data.sql post-data.sql | psql -Xq -o /dev/null -v ON_ERROR_STOP=1 -d %s'
	],
	'sections of an archive' => [
		'pg_dump -Fc %s >dump',
		'for s in pre-data data post-data; do pg_restore -e --section=$s -d %1$s dump; done'
	],
);
chdir $dir or die "chdir: $!";
for my $db ('reassigned', 'demoted')
{
	for my $way (sort keys %ways)
	{
		my ($dump, $restore) = @{ $ways{$way} };
		is(shell(sprintf($dump, $db)), '', "$db, $way: the dump is equal");
		for my $with (0, 1)
		{
			# existing objects cause no error; but "cleaned before" must drop them
			sql('postgres', 'CREATE DATABASE copy');
			sql('copy', 'CREATE EXTENSION tacho') if $with;
			my $said = shell("export PGOPTIONS=--client-min-messages=warning; " . sprintf($restore, "copy"));
			is($said, "", "$db, $way: restored" . ($with ? " over the extension" : ""));
			is_whole('copy', $with ? "$way, over the extension" : $way);
			sql('postgres', 'DROP DATABASE copy');
		}
	}
}

# One schema of the application, into a database that has the extension.
sql('postgres', 'CREATE DATABASE copy; ALTER DATABASE copy OWNER TO app');
sql('copy', 'CREATE EXTENSION tacho');
is(shell('pg_dump -Fc --schema=of_app reassigned >dump && pg_restore -e -d copy dump'), '', 'the dump of one schema can be restored');
is_whole('copy', 'a dump of one schema');
is(shell('pg_dump --schema=tacho reassigned | grep -E "^(CREATE|ALTER|GRANT|REVOKE)"; true'), '', 'the dump of the schema tacho is empty');

# As the owner of the database, who is not a superuser.
sql('copy', 'DROP SCHEMA of_app CASCADE; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO app');
is(shell('pg_dump -Fc -x --no-comments reassigned >dump && PGOPTIONS=--client-min-messages=warning pg_restore -e -U app -d copy dump'),
	'', 'a role that is no superuser restores where the extension exists');
is_whole('copy', 'restored by a role that is no superuser');
sql('postgres', 'DROP DATABASE copy; CREATE DATABASE copy OWNER app');
like(shell('pg_restore -e -U app -d copy dump'), qr/permission denied to create extension "tacho"/, 'a role that is no superuser cannot restore where it does not exist');
is(sql('copy', q{SELECT to_regnamespace('tacho')}), '', 'a failed restore leaves nothing');

# A whole cluster.
my $other = tacho_cluster('restored');
shell('pg_dumpall >cluster.sql');
my $said = shell('psql -Xq -d postgres <cluster.sql', $other);
is_deeply([ $said =~ /ERROR:  (.*)/g ], [ qq{role "$bootstrap" already exists} ], 'a restored cluster complains only of the role that exists');
{
	local $node = $other;
	is_whole($_, "a cluster, $_") for ('reassigned', 'demoted');
}

# A role that may make schemas makes ours before: empty, or with a function that would
# be called instead of ours; also in a transaction that has not ended yet.
sql('copy', 'SET ROLE app; CREATE SCHEMA tacho');
my $refused = qr/ERROR:  schema "tacho" already exists\n.*belongs to role "app"/;
like(shell('psql -X -d copy -c "CREATE EXTENSION tacho"'), $refused, 'an empty schema of another role is refused');
sql('copy', q{SET ROLE app; CREATE FUNCTION tacho.top(text) RETURNS text LANGUAGE sql AS 'SELECT 1'});
like(shell('psql -X -d copy -c "CREATE EXTENSION tacho"'), $refused, 'a schema of another role with a function is refused');
like(shell('psql -X -d copy -c "CREATE EXTENSION tacho SCHEMA public"'), qr/must be installed in schema "pg_catalog"/, 'another schema for the extension is refused');
sql('copy', 'DROP SCHEMA tacho CASCADE');
my $squatter = $node->background_psql('copy');
$squatter->query_safe('SET ROLE app; BEGIN; CREATE SCHEMA tacho');
my $create = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('copy') . ' application_name=late', '-c', 'CREATE EXTENSION tacho' ],
	'>&', \my $late);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'late' AND wait_event_type = 'Lock'});
$squatter->query_safe('COMMIT');
$squatter->quit;
$create->finish;
like($late, qr/ERROR:  duplicate key value violates unique constraint "pg_namespace_nspname_index"/, 'a schema that another transaction makes is refused');
is(sql('copy', q{SELECT count(*) FROM pg_extension WHERE extname = 'tacho'}), '0', 'the extension is not made in such a schema');
# no other role may add to the schema that the extension makes
sql('copy', 'DROP SCHEMA tacho; CREATE EXTENSION tacho');
like(shell(q{psql -X -U app -d copy -c "CREATE FUNCTION tacho.top(text) RETURNS text LANGUAGE sql AS 'SELECT 1'"}),
	qr/permission denied for schema tacho/, 'no other role may add functions later');
is(sql('copy', 'DROP EXTENSION tacho') . sql('copy', q{SELECT to_regnamespace('tacho')}), '', 'the schema goes with the extension');

$_->stop for ($node, $other);
done_testing();
