# Memory for texts. When it is full, counters continue and a new text takes the room of
# others. When it is raised, missing texts come with the next execution, normalised.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoAccounts qw(create_roles_apart text_account);
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('texts', conf => q{
tacho.query_text_memory = 64kB
tacho.query_text_memory_reserved = 4MB
tacho.statements_max = 1000
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# 64 kB are 512 texts of up to 128 bytes; a role that keeps within its share, half of
# them, keeps its own
my $database = sql(q{select oid from pg_database where datname = 'postgres'});
create_roles_apart($node, sub { text_account($database, @_) }, qw(quiet loader));
my $of = sub { "select count(*), count(query) from tacho.statements s join pg_roles r on r.oid = userid where rolname = '$_[0]'" };
$node->safe_psql('postgres', join("\n", map { "with q$_ as (select $_) select from q$_;" } 1 .. 60),
	extra_params => [ '-U', 'quiet' ]);
$node->safe_psql('postgres', join("\n", map { "with t$_ as (select $_) select from t$_;" } 1 .. 800),
	extra_params => [ '-U', 'loader' ]);
is(sql($of->('quiet')), '60|60', 'texts of one role leave the texts of another');
like(sql($of->('loader')), qr/^800\|4\d\d$/, 'the other role has the rest of the memory');
$node->safe_psql('postgres', join("\n", map { "with r$_ as (select $_) select from r$_;" } 1 .. 40),
	extra_params => [ '-U', 'quiet' ]);
is(sql($of->('quiet')), '100|100', 'a role gets its share when the memory is full');

my $state = 'select text_bytes <= 65536, text_bytes_max, texts_missing > 0 from tacho.statements_info';
my $counted = q{select sum(calls) from tacho.statements s join pg_roles r on r.oid = userid where rolname = 'loader'};
sql('select tacho.statements_reset()');
$node->safe_psql('postgres', join("\n", map { "with t$_ as (select $_) select from t$_;" } 1 .. 700),
	extra_params => [ '-U', 'loader' ]);
is(sql(q{select query from tacho.statements where query ~ '^with t700 '}),
	'with t700 as (select $1) select from t700', 'the last statement has its text');
is(sql($state), 't|65536|t', 'texts stay within the limit, the others are counted');
is(sql($counted), 700, 'every statement is counted, with or without its text');
my $missing = sql('select count(*) from tacho.statements where query is null');
cmp_ok($missing, '>', 100, 'older statements have lost their texts to newer ones');
sql('select ' . join(', ', map { "1 as column_$_" } 1 .. 400));
is(sql(q{select length(query), right(query, 3) from tacho.statements where query ~ '1 as column_1,'}),
	'4096|...', 'a long text is cut at a 16th of the memory, with a mark');

# raised by reload: the texts come with the next execution, normalised
$node->append_conf('postgresql.conf', 'tacho.query_text_memory = 2MB');
$node->reload;
$node->poll_query_until('postgres', 'select text_bytes_max = 2097152 from tacho.statements_info');
$node->safe_psql('postgres', join("\n", map { "with t$_ as (select -$_) select from t$_;" } 1 .. 700),
	extra_params => [ '-U', 'loader' ]);
is(sql(q{select count(*), sum(calls), min(calls), max(calls) from tacho.statements
	where query ~ '^with t\d+ as \(select \$1\) select from t\d+$'}),
	'700|1400|2|2', 'a text filled in later has no constants, and the counts are kept');
cmp_ok(sql(q{select count(*) from tacho.statements where text_since > stats_since and query ~ '^with t'}),
	'>', 100, 'text_since says that the text came later');

# a long text
sql('select tacho.statements_reset()');
sql('select ' . join(', ', map { "1 as column_$_" } 1 .. 1600));
is(sql(q{select length(query) > 20000 from tacho.statements where query ~ 'column_1600'}),
	't', 'a long text is kept in many chunks');

# existing entries need no normalising
sql('select 1 as warm');
my $before = sql('select normalizations from tacho.statements_info');
sql(join ";\n", map { "select $_ as warm" } 1 .. 50);
is(sql("select normalizations - $before from tacho.statements_info"), 1,
	'an existing entry is not normalised again');

# the memory comes back
sql('select tacho.statements_reset()');
is(sql('select text_bytes <= 512 from tacho.statements_info'), 't', 'a reset gives the memory back');

# other encodings
sql(q{create database latin encoding 'LATIN1' locale 'C' template template0});
$node->safe_psql('latin', qq{set client_encoding = 'UTF8'; select 1 as "caf\x{c3}\x{a9}"});
is($node->safe_psql('postgres', q{set client_encoding = 'UTF8'; select count(*) from tacho.statements s join pg_database d on d.oid = dbid where datname = 'latin' and query ~ U&'caf\00e9'}),
	1, 'a text of a LATIN1 database is readable in a UTF8 one');
$node->stop;
done_testing();
