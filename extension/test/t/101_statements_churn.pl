# With more statements than entries, hot entries stay and every execution is accounted
# for.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster pgbench_script run_pgbench);

my $node = statements_cluster('churn', conf => q{
tacho.statements_max = 500
tacho.statements_max_reserved = 20000
max_connections = 60
tacho.query_text_memory = 1MB
});

# calls counted in all entries, without the calls of this query
my $counted = q{
	select sum(calls) + (select skipped from tacho.statements_info)
		from tacho.statements
		where queryid is null or query ~* '^with'};

sub reset_all
{
	$node->safe_psql('postgres', 'select tacho.statements_reset()');
}

# 80 % of 100 hot statements, 20 % of many
my $hot = pgbench_script($node, 'churn', <<'END');
\set roll random(1, 100)
\set hot random(1, 100)
\set cold random(1, 1000000)
\if :roll <= 80
with hot:hot as (select 1) select from hot:hot;
\else
with cold:cold as (select 1) select from cold:cold;
\endif
END
reset_all();
my $executed = run_pgbench($node, $hot, '-c', 16, '-j', 2, '-t', 1250);
is($executed, 20000, 'pgbench has done all transactions');
# the reset and these queries are evicted too, so their number is known
is($node->safe_psql('postgres', q{
	select sum(calls) filter (where query ~ '^with')
			+ sum(calls) filter (where queryid is null)
			+ (select skipped from tacho.statements_info)
			- (select 1 - count(*) from tacho.statements where query ~ 'statements_reset')
		from tacho.statements}),
	$executed, 'entries + evicted + skipped = executed');
is($node->safe_psql('postgres', q{select count(*) from tacho.statements where query ~ '^with hot'}),
	100, 'every hot statement has its entry');
cmp_ok($node->safe_psql('postgres', 'select evicted from tacho.statements_info'),
	'>', 2000, 'thousands of statements were evicted');
is($node->safe_psql('postgres', 'select entries <= max and max = 500 from tacho.statements_info'),
	't', 'the number of entries stays within its limit');
is($node->safe_psql('postgres', q{
	select count(*), count(queryid), count(userid), count(query), bool_and(calls > 0)
		from tacho.statements where queryid is null}),
	'1|0|0|0|t', 'evicted statements of the database are one row without a query');

# one statement more than fits, in turns: the newest is counted, too
reset_all();
my $queries = join "\n", map { "with q$_ as (select 1) select from q$_;" } 1 .. 501;
$node->safe_psql('postgres', $queries) for 1 .. 3;
is($node->safe_psql('postgres', q{select calls >= 1 from tacho.statements where query ~ '^with q501 '}),
	't', 'a statement beyond the limit is counted');
is($node->safe_psql('postgres', q{
	select sum(calls) filter (where query ~ '^with' or queryid is null) + (select skipped from tacho.statements_info)
			- (select 1 - count(*) from tacho.statements where query ~ 'statements_reset')
		from tacho.statements}),
	1503, 'entries + evicted + skipped = executed, with eviction in turns');

# the memory of evicted texts is freed
reset_all();
my $base = $node->safe_psql('postgres', 'select text_bytes from tacho.statements_info');
run_pgbench($node, $hot, '-c', 8, '-j', 2, '-t', 1000);
reset_all();
is($node->safe_psql('postgres', "select text_bytes - $base from tacho.statements_info"),
	128, 'after a reset only the text of the last question is kept');
is($node->safe_psql('postgres', 'select texts_missing from tacho.statements_info'),
	0, 'no text is missing');

# after the limit was lowered, no statement pays for more than one sweep. Neither the
# size of the change nor empty slots of the slab matter.
sub limit_is
{
	my ($max) = @_;
	$node->append_conf('postgresql.conf', "tacho.statements_max = $max");
	$node->reload;
	$node->poll_query_until('postgres', "select max = $max from tacho.statements_info");
}
my $evicted = 'select evicted from tacho.statements_info';
my $is_low = 'select max = 100 from tacho.statements_info';
for my $n (1000, 3000)
{
	limit_is($n * 1.1);
	reset_all();
	$node->safe_psql('postgres', join "\n", map { "with many$_ as (select 1) select from many$_;" } 1 .. $n);
	$node->safe_psql('postgres', $_) for $evicted, $is_low;
	limit_is(100);
	my @known = split /\n/, $node->safe_psql('postgres', join "\n", "$evicted;",
		map { "with next$_ as (select 1) select from next$_; $evicted;" } 1 .. 300);
	is($known[0], 0, "$n entries over a limit of 100: nothing is evicted before a new statement");
	my @each = sort { $a <=> $b } map { $known[$_] - $known[ $_ - 1 ] } 1 .. $#known;
	# the statement, and this query if it was evicted
	cmp_ok($each[-1], '<=', 2 * 72, "no statement evicts more than one sweep does");
	cmp_ok($node->safe_psql('postgres', 'select entries from tacho.statements_info'),
		'<=', 100, 'the number of entries reaches the limit');
	is($node->safe_psql('postgres', 'select skipped from tacho.statements_info'),
		0, 'no execution is left out');
	is($node->safe_psql('postgres', qq{
		select sum(calls) filter (where query ~ '^with' or queryid is null) >= $n + 300
			from tacho.statements}), 't', 'no execution is lost');
}

# the limit moves by reload, down and up, under load
my $bench = IPC::Run::start(
	[
		'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $hot,
		'-c', 4, '-t', 10000, 'postgres'
	],
	'>', \my $out, '2>', \my $err);
$node->append_conf('postgresql.conf', 'tacho.statements_max = 100');
$node->reload;
ok($node->poll_query_until('postgres', 'select entries <= 100 and max = 100 from tacho.statements_info'),
	'a lower limit is reached after a reload');
$node->append_conf('postgresql.conf', 'tacho.statements_max = 2000');
$node->reload;
ok($node->poll_query_until('postgres', 'select entries > 1000 and max = 2000 from tacho.statements_info'),
	'a higher limit is used after a reload');
$bench->finish;
is($node->safe_psql('postgres', q{
	select sum(calls) filter (where query ~ '^with' or queryid is null) + (select skipped from tacho.statements_info)
			>= 40000
		from tacho.statements}), 't', 'no execution is lost while the limit changes');
# beyond the reserved number
$node->append_conf('postgresql.conf', 'tacho.statements_max = 1000000');
$node->reload;
ok($node->poll_query_until('postgres', 'select max = reserved from tacho.statements_info'),
	'the limit is at most the reserved number');
$node->stop;
done_testing();
