# Memory for statements follows statements_max and query_text_memory, which may
# be doubled without a restart.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('reserved', conf => q{
tacho.statements_max = 1000
tacho.query_text_memory = 1MB
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub reserved_bytes
{
	return sql(q{select allocated_size from pg_shmem_allocations where name = 'tacho statements slab'});
}

sub starts_with
{
	$node->append_conf('postgresql.conf', join "\n", map { "tacho.$_" } @_);
	$node->restart;
}

sub max_after_reload
{
	my ($max, $expected) = @_;
	$node->append_conf('postgresql.conf', "tacho.statements_max = $max");
	$node->reload;
	ok($node->poll_query_until('postgres', "select max = $expected from tacho.statements_info"),
		"statements_max = $max: the limit is $expected");
}

my $limits = 'select max, reserved from tacho.statements_info';
is(sql($limits), '1000|2000', 'memory is reserved for twice as many statements');
my $small = reserved_bytes();
max_after_reload(2000, 2000);
max_after_reload(5000, 2000);

starts_with('statements_max = 4000', 'query_text_memory = 4MB');
is(sql($limits), '4000|8000', 'a larger limit at the start reserves more');
# memory for evicted counters and the index (a power of two) do not grow exactly alike
is(sprintf('%.0f', reserved_bytes() / $small), 4, 'four times the limits take four times the memory');

starts_with('statements_max_reserved = 6000', 'query_text_memory_reserved = 8MB');
is(sql($limits), '4000|6000', 'the setting reserves another number of places');
starts_with('statements_max_reserved = 500');
is(sql($limits), '4000|4000', 'the reserved number is never less than the limit at the start');
$node->stop;
done_testing();
