# A cursor that is open at COMMIT is executed by the statement that opened it: the end of
# the transaction adds no entry of its own, which would have the constants.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('cursors', conf => "tacho.statements_track = all\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Entries of a query, as "level user calls". The query of this function is left out.
sub entries
{
	my ($of) = @_;
	return sql(qq{select coalesce(string_agg(case when toplevel then 'top ' else 'nested ' end || rolname || ' ' || calls, ', ' order by toplevel, rolname), '')
		from tacho.statements join pg_roles r on r.oid = userid
		where query ~ '$of' and query !~ 'tacho'});
}

my $owner = sql('select current_user');
sql('create table place(id int, body text); create role caller login; grant select on place to caller');
sql(q{create function opened() returns refcursor language plpgsql as $$
	declare c cursor for select body as opened from place where id = 987129871 and body <> 'qzx987129871';
	begin open c; return c; end $$});
sql(q{create function defined() returns refcursor language plpgsql security definer as $$
	declare c cursor for select id as defined from place where id = 987129871 and body <> 'qzx987129871';
	begin open c; return c; end $$});

sql('begin; select opened(); commit');
is(entries('as opened from'), "nested $owner 1", 'a cursor of a function that is open at COMMIT is counted');
sql('begin; select opened(); rollback');
is(entries('as opened from'), "nested $owner 1", 'a cursor that is open at ROLLBACK adds no execution');
sql('set role caller; begin; select defined(); commit');
is(entries('as defined from'), "nested $owner 1", 'a cursor of a function of another user is counted');
sql(q{begin; declare c cursor for select id, body as declared from place where id = 987129871 and body <> 'qzx987129871'; fetch c; commit});
my ($major) = $node->config_data('--version') =~ /(\d+)/;
is(entries('as declared from'), ($major >= 18 ? "nested $owner 1, " : '') . "top $owner 1",
	'DECLARE CURSOR is counted, its query too from PostgreSQL 18 on');
is(sql(q{select string_agg(query, e'\n') from tacho.statements where query ~ '987129871' and query !~ 'tacho|create function'}), '',
	'no text has a constant');
$node->stop;
done_testing();
