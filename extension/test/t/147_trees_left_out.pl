# A plan without a tree: tacho.plan() says why. The server records the reason; the other reasons
# follow from the rest of the history.
use strict;
use warnings;
use TachoStatus qw(metric);
use TachoTest qw(server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('trees_left_out', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
autovacuum = off
jit = off
});

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]) }

sql('CREATE DATABASE other');
sql('CREATE ROLE reader; GRANT USAGE ON SCHEMA tacho TO reader; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO reader');
for my $database (qw(postgres other))
{
	sql("DO \$\$ BEGIN FOR i IN 1 .. 60 LOOP EXECUTE format('CREATE TABLE t_%s (a int)', i); END LOOP END \$\$" =~ s/END LOOP END/END LOOP; END/r, $database);
}
sql('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader');

# The ids of the plans of the statements with this text, the first execution first.
sub plans
{
	my ($like) = @_;
	return split /\n/, sql("SELECT plan_id FROM tacho.statement_plans JOIN tacho.statements s USING (userid, dbid, toplevel, queryid) WHERE query LIKE '$like' ORDER BY since");
}

# The reason for a plan without a tree: the notice without the time, detail and hint.
sub reason
{
	my ($plan, $role, $more) = @_;
	my $err;

	$role = $role ? "SET ROLE $role; " : '';
	$node->psql('postgres', "${role}SELECT FROM tacho.plan('$plan'" . ($more // '') . ')', stderr => \$err);
	$err =~ s/ \(\d{4}-[^)]+\)$//m;
	return $err =~ s/\A.*?NOTICE:  plan $plan has no tree in the history: //r;
}

# Waits until a question has this reason.
sub is_reason
{
	my ($expected, $name, @asked) = @_;
	my $found = '';

	for (1 .. 200)
	{
		$found = reason(@asked);
		last if $found eq $expected;
		select undef, undef, undef, 0.1;
	}
	is($found, $expected, $name);
	return;
}

sub reload
{
	$node->reload;
	$node->poll_query_until('postgres', "SELECT $_[0]") or die 'no reload';
	return;
}

my $again = "\nHINT:  The next execution tries again. The limit is tacho.plan_text_rate.";

sql('SET tacho.plan_text = off; SELECT a FROM t_1 WHERE a > 1');
my ($off) = plans('SELECT a FROM t_1 WHERE a > $1');
is_reason("tacho.plan_text was off\nHINT:  Switch tacho.plan_text on. The next execution is recorded.", 'the setting was off', $off);

# 30 seconds of one tree a second are used up by 60 plans
sql('ALTER SYSTEM SET tacho.plan_text_rate = 1');
reload("current_setting('tacho.plan_text_rate') = '1'");
my $burst = join ';', map { "SELECT a AS burst FROM t_$_" } 1 .. 60;
sql($burst);
my @first = plans('SELECT a AS burst%');
is(scalar(@first), 60, 'there are 60 plans');
is_reason("its database had used up its part of tacho.plan_text_rate$again", 'the limit of the database', $first[-1]);
sql($burst, 'other');
my @second = grep { my $plan = $_; !grep { $_ eq $plan } @first } plans('SELECT a AS burst%');
my $reason = '';
for my $plan (map { @second } 1 .. 20)
{
	$reason = reason($plan);
	last if $reason =~ /^the server/;
}
is($reason, "the server had used up tacho.plan_text_rate$again", 'the limit of the server, in another database');

# nothing is recorded, but something follows
my $unseen = 'no sample and no counter of it has this plan';
is(reason('12345'), $unseen, 'a plan that was not executed');
sql('EXPLAIN SELECT a FROM t_1 WHERE a < 1');
is(join(' ', plans('EXPLAIN%')), '', 'EXPLAIN executes no plan');
my $others = "\nDETAIL:  Trees of plans that other roles executed are not shown to you.";
is(reason($off, 'reader'), "$unseen$others", 'a role does not see the reason of a plan that it did not execute');
sql('GRANT SET ON PARAMETER tacho.plan_text TO reader; ALTER ROLE reader LOGIN');
$node->safe_psql('postgres', 'SET tacho.plan_text = off; SELECT pg_sleep(1), count(*) FROM t_1 WHERE a > 5 AND a < 7', extra_params => [ '-U', 'reader' ]);
my ($own) = plans('SELECT pg_sleep($1), count%');
is_reason("tacho.plan_text was off$others\nHINT:  Switch tacho.plan_text on. The next execution is recorded.", 'a role sees the reason of its own plan', $own, 'reader');
is(reason($first[0], undef, ", username => 'reader'"), "it has one of another query, database or role than you ask for\nHINT:  Ask without query_id, database and username.",
	'a tree of another role');

# the share of the day is too small for a tree of more than 256 bytes
sql("ALTER SYSTEM SET tacho.plan_text_rate = 10000");
sql('ALTER SYSTEM SET tacho.query_text = off');
reload("current_setting('tacho.plan_text_rate') = '10000'");
wait_for_ticks($node, 3, server_ms($node));
sql("ALTER SYSTEM SET tacho.text_limit = '1kB'");
reload("current_setting('tacho.text_limit') = '1kB'");
my $session = tacho_session($node);
my $query = 'SELECT count(*) AS large FROM t_1 JOIN t_2 USING (a) JOIN t_3 USING (a) GROUP BY a';
$session->run($_) for 'SET enable_hashagg = off', q{SET work_mem = '5MB'}, $query;
my ($large) = plans('SELECT count(*) AS large%');
is_reason("its role had used up its share of tacho.text_limit for that day\nHINT:  The limit is tacho.text_limit. It begins again each day.", 'the share of the day', $large);
# no text was left out, only trees were
is(metric($node, 'texts_over_limit'), '0', 'no text is over the limit');
sql("ALTER SYSTEM SET tacho.text_limit = '16MB'");
reload("current_setting('tacho.text_limit') = '16MB'");
my $nodes = 0;
for (1 .. 200)
{
	$session->run($query);
	$nodes = sql("SELECT count(*) FROM tacho.plan('$large')");
	last if $nodes > 0;
	select undef, undef, undef, 0.1;
}
my $explained = sql("SET enable_hashagg = off; SET work_mem = '5MB'; EXPLAIN (COSTS OFF) $query");
is($nodes, 1 + (() = $explained =~ /->/g), 'a higher limit admits the tree on the same day');
$node->stop;
done_testing();
