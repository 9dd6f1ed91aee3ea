# ALTER EXTENSION UPDATE leads from the SQL objects of version 0.1 (commit bdac35e) to
# these. CREATE EXTENSION makes the same objects, and dumps are the same. The drop-in for
# pg_stat_statements goes on, and statistics stay. An update that cannot keep everything
# is refused, or names the statements to run.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename qw(basename);
use File::Copy qw(copy);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('updated', conf => "tacho.pg_stat_statements = on");
# The scripts of version 0.1 are installed until the end of the test.
my $installed = $node->config_data('--sharedir') . '/extension';
my @old = map { basename($_) } glob "$FindBin::RealBin/../data/tacho--0.1.*";
copy("$FindBin::RealBin/../data/$_", "$installed/$_") or die "$_: $!" for @old;
END { unlink map { "$installed/$_" } @old }

sub sql { return $node->safe_psql(@_) }

# Standard error of statements.
sub said
{
	my ($db, $statements) = @_;
	my ($status, $out, $err) = $node->psql($db, $statements);
	return $err =~ s/^psql:<stdin>:\d+: //mgr;
}

# Objects of the extension, as text: definitions, owners, rights, comments.
my $objects = q{
	SELECT string_agg('- ' || i.type || ' ' || i.identity || ' ' || coalesce(pg_get_functiondef(p.oid), pg_get_viewdef(c.oid), '')
			|| ' ' || coalesce(p.proowner, c.relowner, n.nspowner)::regrole || ' ' || coalesce(p.proacl, c.relacl, n.nspacl)::text
			|| ' ' || coalesce(r.initprivs::text, '') || ' ' || obj_description(d.objid), E'\n' ORDER BY i.identity)
		FROM pg_depend d
		JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'tacho' AND d.deptype = 'e'
		CROSS JOIN pg_identify_object(d.classid, d.objid, d.objsubid) i
		LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
		LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
		LEFT JOIN pg_namespace n ON d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
		LEFT JOIN pg_init_privs r ON r.classoid = d.classid AND r.objoid = d.objid};
my $extension = q{
	SELECT extversion, extnamespace::regnamespace, extowner::regrole,
			(SELECT string_agg(refclassid::regclass || ' ' || deptype::text, ',') FROM pg_depend WHERE classid = 'pg_extension'::regclass AND objid = e.oid)
		FROM pg_extension e WHERE extname = 'tacho'};

# Objects of the extension that are in one database only.
sub differing
{
	my %count;
	for my $db (@_)
	{
		$count{$_} .= " $db" for split /^(?=- )/m, sql($db, $objects);
	}
	return join '', map { "$count{$_}: $_" } grep { $count{$_} ne " $_[0] $_[1]" } sort keys %count;
}

sql('postgres', 'CREATE ROLE analyst; CREATE ROLE dba SUPERUSER LOGIN; CREATE ROLE operator LOGIN IN ROLE dba');
sql('postgres', "CREATE DATABASE $_") for qw(fresh old used strange copy narrow taken);
sql('fresh', 'CREATE EXTENSION tacho');
sql($_, q{CREATE EXTENSION tacho VERSION '0.1'}) for qw(old used strange narrow taken);
like(sql('old', $extension), qr/^0\.1\|tacho\|/, 'CREATE EXTENSION makes the objects of version 0.1');

# While a statement counts, and the drop-in shows it where pg_stat_statements is installed.
my $dropin = -e $node->config_data('--sharedir') . '/extension/pg_stat_statements.control';
sql('old', q{SELECT tacho.install_pg_stat_statements(); CREATE SCHEMA app; CREATE VIEW app.calls AS SELECT sum(calls) FROM pg_stat_statements WHERE query ~ 'pi\(\)'}) if $dropin;
sql('old', 'SELECT pi()');
my $calls = $dropin ? sql('old', 'TABLE app.calls') : undef;
is(said('old', 'ALTER EXTENSION tacho UPDATE'), '', 'an extension that nothing else uses is updated without a word');
is(differing('old', 'fresh'), '', 'each object is equal to the one that CREATE EXTENSION makes');
is(sql('old', $extension), sql('fresh', $extension), 'the extension is, too');
sql('old', 'SELECT pi()');
SKIP:
{
	skip 'pg_stat_statements is not installed', 1 unless $dropin;
	is(sql('old', 'TABLE app.calls'), $calls + 1, 'views on pg_stat_statements stay, and count on');
}
is(sql('old', q{SELECT calls FROM tacho.statements WHERE query ~ '^SELECT pi'}), '2', 'the new view shows the calls from before and after');
is(sql('old', 'SELECT current_user'), sql('fresh', 'SELECT current_user'), 'the session keeps its role');
is(sql('old', "BEGIN; SET LOCAL ROLE dba; ALTER EXTENSION tacho UPDATE; SELECT current_user; ROLLBACK"), 'dba', 'an update of the newest version does nothing');

# A dump is restored by CREATE EXTENSION of the new version.
{
	local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
	my $dumped = '';
	IPC::Run::run([ 'bash', '-o', 'pipefail', '-c', 'pg_dump old | psql -Xq -o /dev/null -v ON_ERROR_STOP=1 -d copy' ], '>&', \$dumped);
	is($dumped, '', 'a dump after the update can be restored');
	is(differing('copy', 'fresh'), '', 'the restored database has the same objects');
}

# Somebody granted rights: they are named, as statements that give them again.
sql('used', q{
	GRANT EXECUTE ON FUNCTION tacho.top TO analyst WITH GRANT OPTION;
	GRANT EXECUTE ON FUNCTION tacho.aas TO PUBLIC;
	GRANT SELECT ON tacho.statements_info TO analyst;
	CREATE SCHEMA app;
	CREATE VIEW app.load AS SELECT * FROM tacho.aas()});
my $grants = q{GRANT EXECUTE ON FUNCTION tacho.aas TO PUBLIC;
GRANT SELECT ON TABLE tacho.statements_info TO analyst;
GRANT EXECUTE ON FUNCTION tacho.top TO analyst WITH GRANT OPTION;
};
my $before = sql('used', $objects);
like(said('used', 'ALTER EXTENSION tacho UPDATE'),
	qr{^WARNING:  objects of extension "tacho" have only the rights of new ones
DETAIL:  \Q$grants\EHINT:  To bring back the rights from before, run these statements\.
ERROR:  other objects depend on objects of extension "tacho", which the update replaces
DETAIL:  view app\.load depends on function tacho\.aas\(.*\)
HINT:  Save their definitions, drop them, update the extension, and create them again\.$}m, 'an object that depends on an old one is named');
is(sql('used', $objects), $before, 'an update that was refused leaves everything as it was');
sql('used', 'DROP VIEW app.load');
like(said('used', 'ALTER EXTENSION tacho UPDATE'), qr/^WARNING: .*\nDETAIL:  \Q$grants\EHINT: /, 'rights that are gone are named');
is(differing('used', 'fresh'), '', 'the objects have the rights of new ones');
sql('used', $grants);
is(sql('used', q{SELECT has_function_privilege('analyst', oid, 'execute with grant option') FROM pg_proc WHERE oid = 'tacho.top'::regproc}), 't', 'the statements give them again');

# Objects that do not belong to the extension.
sql('strange', 'CREATE TABLE tacho.notes(); CREATE FUNCTION tacho.own() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$');
like(said('strange', 'ALTER EXTENSION tacho UPDATE'),
	qr/^ERROR:  schema "tacho" has objects that do not belong to extension "tacho"\nDETAIL:  function tacho\.own\(\)\ntable tacho\.notes\nHINT:  Move them to another schema or drop them, then update the extension\.$/m,
	'objects of others in the schema are named');
sql('strange', 'DROP TABLE tacho.notes; DROP FUNCTION tacho.own()');
{
	local $ENV{PGUSER} = 'operator';
	like(said('strange', 'SET ROLE dba; ALTER EXTENSION tacho UPDATE'), qr/^ERROR:  session role "operator" must be a superuser/, 'a session that only SET ROLE makes a superuser is refused');
}
is(said('strange', 'ALTER EXTENSION tacho UPDATE'), '', 'without these objects the extension is updated');
is(differing('strange', 'fresh'), '', 'the objects are the same then');

# So are rights on the schema, and rights that somebody took away.
sql('narrow', q{
	REVOKE EXECUTE ON FUNCTION tacho.top FROM pg_read_all_stats;
	REVOKE USAGE ON SCHEMA tacho FROM PUBLIC;
	GRANT USAGE, CREATE ON SCHEMA tacho TO analyst WITH GRANT OPTION;
	SET ROLE analyst;
	GRANT CREATE ON SCHEMA tacho TO operator});
my $narrowed = q{GRANT CREATE ON SCHEMA tacho TO analyst WITH GRANT OPTION;
GRANT USAGE ON SCHEMA tacho TO analyst WITH GRANT OPTION;
GRANT CREATE ON SCHEMA tacho TO operator;
REVOKE USAGE ON SCHEMA tacho FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION tacho.top FROM pg_read_all_stats;
};
is(said('narrow', 'ALTER EXTENSION tacho UPDATE'), qq{WARNING:  objects of extension "tacho" have only the rights of new ones
DETAIL:  ${narrowed}HINT:  To bring back the rights from before, run these statements.}, 'rights that were granted or taken away are named');
is(differing('narrow', 'fresh'), '', 'schema and functions have the rights of new ones');
sql('narrow', $narrowed);
is( sql('narrow', q{SELECT has_function_privilege('pg_read_all_stats', 'tacho.top'::regproc, 'execute'), has_schema_privilege('pg_monitor', 'tacho', 'usage'), has_schema_privilege('analyst', 'tacho', 'create with grant option')}),
	'f|f|t', 'the statements have their effect');

# The owner of the schema of 0.1 may be a superuser no more.
sql('taken', q{
	CREATE ROLE former;
	CREATE SEQUENCE calls;
	ALTER SCHEMA tacho OWNER TO former;
	SET ROLE former;
	CREATE FUNCTION tacho.same(oid, int) RETURNS boolean LANGUAGE sql AS $$SELECT nextval('public.calls') > 0 AND $1 = $2::oid$$;
	CREATE OPERATOR tacho.= (FUNCTION = tacho.same, LEFTARG = oid, RIGHTARG = int)});
like(said('taken', 'ALTER EXTENSION tacho UPDATE'), qr/^ERROR:  schema "tacho" has objects that do not belong to extension "tacho"\nDETAIL:  function tacho\.same\(pg_catalog\.oid,integer\)\noperator tacho\.=/m,
	'an operator in the schema is named');
is(sql('taken', 'SELECT is_called FROM calls'), 'f', 'the update calls no operator of the schema');

# A server that was not restarted: its library knows no setting of tags.
my $running = PostgreSQL::Test::Cluster->new('running');
$running->init;
$running->start;
$running->safe_psql('postgres', q{CREATE EXTENSION tacho VERSION '0.1'});
my (undef, undef, $refused) = $running->psql('postgres', q{SET tacho.sample_interval = '1s'; ALTER EXTENSION tacho UPDATE});
like($refused, qr/ERROR:  the server runs an older library of tacho\nHINT:  Restart the server, then update the extension\.$/m,
	'an update before the restart is refused');
is($running->safe_psql('postgres', q{ALTER EXTENSION tacho UPDATE; SELECT installed_version = default_version FROM pg_available_extensions WHERE name = 'tacho'}), 't',
	'a server that does not preload the library can update');
done_testing();
