# In the place of pg_stat_statements: settings, objects, and the way back.

use strict;
use warnings;
use File::Basename 'dirname';
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

plan skip_all => 'pg_stat_statements is not installed'
  unless -e PostgreSQL::Test::Cluster->new('probe')->config_data('--pkglibdir') . '/pg_stat_statements.so';

my $node = statements_cluster('dropin', conf => q{
tacho.pg_stat_statements = on
pg_stat_statements.max = 321
tacho.statements_track = all
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# settings: a set one overrides, an unset one does not
is(sql('select max from tacho.statements_info'), 321, 'pg_stat_statements.max counts');
sql(q{do 'begin perform 1; end'});
is(sql(q{select count(*) from tacho.statements where not toplevel and query ~ '^SELECT .1$'}), 1,
	'tacho.statements_track counts while pg_stat_statements.track is not set');
is(sql(q{select tacho.statements_reset() is null; set pg_stat_statements.track = 'none'; select 1 as unseen; reset pg_stat_statements.track; select 2, 3 as seen;
	select string_agg(query, ',') from tacho.statements where query ~ 'seen' and query !~ 'tacho'}),
	"f\n1\n2|3\n" . 'select $1, $2 as seen', 'pg_stat_statements.track counts while it is set');

# objects: as soon as the extension exists, it shows what tacho counts
my $members = q{select count(*) from pg_depend d join pg_extension e on e.oid = d.refobjid where extname = 'pg_stat_statements' and deptype = 'e'};
my $libraries = q{select string_agg(distinct probin, ',') from pg_proc where proname ~ '^pg_stat_statements'};
my $state = q{select value from tacho.status() where metric = 'pg_stat_statements'};

# status() as text, and its warning
sub state_and_warning
{
	my ($code, $out, $err) = $node->psql('postgres', $state);
	return "$out|$err";
}

sql('create extension pg_stat_statements; grant select on pg_stat_statements to pg_monitor; create view mine as select query, calls from pg_stat_statements');
is(sql($libraries), '$libdir/tacho', 'CREATE EXTENSION makes its functions call tacho');
is(state_and_warning(), 'replaced|', 'status() says that the functions are replaced');
my $count = sql($members);
sql('select tacho.uninstall_pg_stat_statements()');
my ($code, $out, $err) = $node->psql('postgres', 'select * from pg_stat_statements');
like($err, qr/must be loaded via/, 'the library of pg_stat_statements does not work here');
like(state_and_warning(), qr/^its functions call their own library\|.*WARNING:  \d functions of the extension "pg_stat_statements" call their own library instead of tacho\n.*HINT:  Call tacho.install_pg_stat_statements/s,
	'status() warns of functions that do not call tacho');
sql('create extension if not exists plpgsql');
is(sql($libraries), '$libdir/pg_stat_statements', 'another extension does not change what was uninstalled');
sql('create role anybody; set role anybody; create extension if not exists pg_stat_statements');
is(sql($libraries), '$libdir/pg_stat_statements', 'a role without rights on the extension changes nothing');
like(sql('select tacho.install_pg_stat_statements()'), qr/^[23]$/, 'installing replaces the functions');
is(state_and_warning(), 'replaced|', 'status() says that the functions are replaced, without a warning');
is(sql($members), $count, 'replaced functions remain members of the extension');
sql('drop view mine; drop extension pg_stat_statements');

# each way to get it, in databases that know nothing of tacho
sub database
{
	my ($name, $how, @commands) = @_;
	my $sees = q{select 7 as a, 8 as b, 9 as c; select calls from pg_stat_statements where query = 'select $1 as a, $2 as b, $3 as c' and dbid = (select oid from pg_database where datname = current_database())};

	$node->safe_psql($name, $_) for @commands;
	is($node->safe_psql($name, $sees), "7|8|9\n1", $how);
	is($node->safe_psql($name, $libraries), '$libdir/tacho', 'all functions of the extension are replaced');
}

sql('create database made_later');
database('made_later', 'a database made later', 'create extension pg_stat_statements');
sql('create database copied template made_later');
database('copied', 'a database made from one that has it');
$node->safe_psql('copied', 'begin; drop extension pg_stat_statements; create extension pg_stat_statements; rollback');
is($node->safe_psql('copied', $libraries), '$libdir/tacho', 'a CREATE EXTENSION that is rolled back changes nothing');
sql('create database updated');
database('updated', 'after its update', q{create extension pg_stat_statements version '1.9'}, 'alter extension pg_stat_statements update');
sql('create database other_schema');
database('other_schema', 'in a schema of its own, by a function',
	q{create schema s; do $$begin execute 'create extension pg_stat_statements schema s'; end$$; alter database other_schema set search_path = s, public});
sql('create database made_before');
$node->safe_psql('made_before', q{create extension pg_stat_statements; create extension tacho; select tacho.uninstall_pg_stat_statements(); drop extension tacho});
database('made_before', 'asked for again where it calls its own library', 'create extension if not exists pg_stat_statements');
append_to_file($node->config_data('--sharedir') . '/extension/tacho_test_needs.control', "default_version = '1'\nrequires = 'pg_stat_statements'\n");
append_to_file($node->config_data('--sharedir') . '/extension/tacho_test_needs--1.sql', "select 1;\n");
sql('create database cascaded');
database('cascaded', 'brought by another extension', 'create extension tacho_test_needs cascade');

# the state in one database
sql('create extension pg_stat_statements; create view mine as select query, calls from pg_stat_statements');
sql('select 4, 5, 6 as shown');
is(sql(q{select calls from mine where query = 'select $1, $2, $3 as shown'}), 1, 'a view over it shows what tacho counts');
is(sql(q{select dealloc = (select evicted from tacho.statements_info) from pg_stat_statements_info}), 't', 'the info view of pg_stat_statements shows the state of tacho');
sql('select pg_stat_statements_reset()');
is(sql(q{select count(*) from mine where query ~ 'shown'}), 0, 'pg_stat_statements_reset() resets the statistics of tacho');
is(sql('select tacho.install_pg_stat_statements()'), 0, 'installing again changes nothing');
is(sql('select count(*) from pg_stat_statements where queryid is null'), 0, 'the view pg_stat_statements hides what tacho evicted');
like(sql('select tacho.uninstall_pg_stat_statements()'), qr/^[23]$/, 'uninstalling gives the functions back');
is(sql($libraries), '$libdir/pg_stat_statements', 'functions call their own library after uninstalling');

# contrib preloaded as well: it keeps its name
for my $order ('tacho, pg_stat_statements', 'pg_stat_statements, tacho')
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$order'");
	my $offset = -s $node->logfile;
	$node->restart;
	like(slurp_file($node->logfile, $offset), qr/WARNING:  tacho does not replace pg_stat_statements/, "$order: the log has a warning");
	sql('select 1');
	is(sql('select count(*) > 0 from pg_stat_statements'), 't', "$order: the view of contrib works");
	is(sql('select max from tacho.statements_info'), 10000, "$order: contrib has settings of its own");
}

# a library that reads the setting when it is loaded, as pg_stat_kcache and powa do
my $reads = PostgreSQL::Test::Utils::tempdir() . '/reads_max';
append_to_file("$reads.c", <<'END');
#include "postgres.h"
#include "fmgr.h"
#include "utils/guc.h"
PG_MODULE_MAGIC;
void _PG_init(void);
void _PG_init(void) { elog(LOG, "max is %s", GetConfigOption("pg_stat_statements.max", false, false)); }
END
system_or_bail('cc', '-w', '-fPIC', '-shared', '-I', $node->config_data('--includedir-server'), '-o', "$reads.so", "$reads.c");
chmod 0755, dirname($reads);
for my $max (321, undef)
{
	$node->adjust_conf('postgresql.conf', 'pg_stat_statements.max', $max);
	for my $order ("tacho, $reads", "$reads, tacho")
	{
		my $name = ($max ? 'set' : 'not set') . ', ' . ($order =~ /^tacho/ ? 'after tacho' : 'before tacho');
		$node->append_conf('postgresql.conf', "shared_preload_libraries = '$order'");
		my $offset = -s $node->logfile;
		$node->stop;
		if ($node->start(fail_ok => 1))
		{
			like(slurp_file($node->logfile, $offset), $max ? qr/max is 321/ : qr/max is 10000/, "$name: the library has the setting");
			is(sql('select max from tacho.statements_info'), $max // 10000, 'tacho has the setting too');
		}
		else
		{
			is($name, 'not set, before tacho', 'a library that reads the setting before tacho does not find it');
			like(slurp_file($node->logfile, $offset), qr/FATAL:  unrecognized configuration parameter "pg_stat_statements.max"/, 'the log names the missing setting');
		}
	}
}
$node->append_conf('postgresql.conf', 'pg_stat_statements.max = 321');

# tools look for the name in the list: a link of that name to tacho
my $links = PostgreSQL::Test::Utils::tempdir();
chmod 0755, $links;
symlink($node->config_data('--pkglibdir') . '/tacho.so', "$links/pg_stat_statements.so") or die $!;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tacho'");
$node->restart;
sql('drop extension pg_stat_statements cascade');
for my $list (["$links/pg_stat_statements", '$libdir'], ['pg_stat_statements', "$links:\$libdir"],
	['pg_stat_statements, tacho', "/nonexistent:$links:\$libdir"])
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$list->[0]'\ndynamic_library_path = '$list->[1]'");
	my $offset = -s $node->logfile;
	$node->restart;
	unlike(slurp_file($node->logfile, $offset), qr/does not replace/, "$list->[0] in $list->[1]: a link to tacho");
	is(sql('select max from tacho.statements_info'), 321, 'the link has the settings');
	sql('create extension pg_stat_statements; select 1 as a, 2 as b, 3 as c, 4 as d');
	is(sql(q{select calls from pg_stat_statements where query = 'select $1 as a, $2 as b, $3 as c, $4 as d'}), 1, 'the link has the functions');
	is(state_and_warning(), 'replaced|', 'status() says that the functions are replaced');
	ok($node->poll_query_until('postgres', q{select value from tacho.status() where metric = 'reason'},
			'could not run "/nonexistent": No such file or directory'), 'the link finds the parent of programs beside tacho');
	sql('select tacho.statements_reset(); drop extension pg_stat_statements');
}
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tacho, pg_stat_statements'\ndynamic_library_path = '\$libdir:$links'");
my $offset = -s $node->logfile;
$node->restart;
like(slurp_file($node->logfile, $offset), qr/WARNING:  tacho does not replace pg_stat_statements/, 'a link that is found after contrib\'s own does not count');
$node->stop;
done_testing();
