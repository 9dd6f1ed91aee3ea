# No value of a query, a policy, a constraint or an index gets into the trees of plans.
# Random queries have marked constants in every place of the grammar. TACHO_PLAN_QUERIES
# sets their number, TACHO_PLAN_SEED another sequence of them.
use strict;
use warnings;
use File::Find qw(find);
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoMarks qw(marked_number marked_query marked_schema marks_in marks_in_text);
use TachoTest qw(tacho_cluster);
use Test::More;

my $queries = $ENV{TACHO_PLAN_QUERIES} // 600;
my $seed = $ENV{TACHO_PLAN_SEED} // 20261128;

srand $seed;
note "TACHO_PLAN_SEED=$seed";

# texts of queries have their own tests; a utility statement keeps its constants there
my $node = tacho_cluster('plan_values', conf => q{
tacho.sample_interval = 10ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.query_text = off
tacho.text_limit = 0
tacho.statements_track = all
tacho.statements_track_utility = off
max_parallel_workers_per_gather = 1
jit = off
});
my $major = $node->pg_version->major;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(marked_schema($major));

# Runs queries in one session. Returns the errors, each with its query. A server may have
# been built without XML.
sub run_queries
{
	my @all = map { marked_query($major) } 1 .. $_[0];
	my $input = join '', map { "ROLLBACK; RESET ROLE; DEALLOCATE ALL; $all[$_];\n\\warn -- $_\n" } 0 .. $#all;
	my $printed;

	$node->psql('postgres', "SET client_min_messages = error;\n$input", stderr => \$printed, on_error_stop => 0);
	my @parts = split /^-- (\d+)\n?/m, $printed;
	is(scalar @parts, 2 * @all, 'the session has run all queries') if @parts != 2 * @all;
	my @errors = map { $parts[ 2 * $_ ] =~ /ERROR:  (.*)/ ? "$1: $all[$_]" : () } 0 .. $#all;
	return grep { !/^unsupported XML/ } @errors;
}

my @errors;
for (my $left = $queries; $left > 0; $left -= 100)
{
	push @errors, run_queries($left < 100 ? $left : 100);
}
is(join("\n", @errors), '', "$queries queries have run");

# a last tree; the trees before it have arrived, too
sql('CREATE TABLE the_last_one (id int); SELECT * FROM the_last_one WHERE id = ' . marked_number());

# The bytes of all files of the history.
sub history
{
	my $bytes = '';

	find(sub {
		return unless -f $_;
		open my $in, '<:raw', $_ or return;
		local $/ = undef;
		$bytes .= <$in>;
		close $in;
	}, $node->data_dir . '/tacho');
	return $bytes;
}

# The bytes of tacho's areas in shared memory, which a backend reads from its own memory.
# The main segment is the largest shared mapping.
sub shared_memory
{
	return pack 'H*', sql(q{
		WITH maps AS (SELECT regexp_match(line, '^([0-9a-f]+)-([0-9a-f]+) rw-s') AS m
		    FROM regexp_split_to_table(pg_read_file('/proc/self/maps', 0, 10000000), E'\n') line),
		  places AS (SELECT ('x' || lpad(m[1], 16, '0'))::bit(64)::bigint AS at, ('x' || lpad(m[2], 16, '0'))::bit(64)::bigint AS until
		    FROM maps WHERE m IS NOT NULL),
		  segment AS (SELECT at FROM places ORDER BY until - at DESC LIMIT 1)
		SELECT string_agg(encode(pg_read_binary_file('/proc/self/mem', at + off, size), 'hex'), '')
		  FROM pg_shmem_allocations, segment WHERE name LIKE 'tacho%'}) =~ s/\s//gr;
}

my $bytes = '';
for (1 .. 600)
{
	$bytes = history();
	last if $bytes =~ /the_last_one/;
	select undef, undef, undef, 0.1;
}
like($bytes, qr/the_last_one/, 'the history has the names of the fixed queries');
like($bytes, qr/watched/, 'the history has the names of the random queries');
is(join(' ', marks_in($bytes)), '', "no value of $queries queries is in a byte of the history");

my $memory = shared_memory();
like($memory, qr/the_last_one/, 'shared memory has the names');
is(join(' ', marks_in($memory, 1)), '', 'shared memory has no value');

# and none is printed, except that an estimate may be the value of LIMIT
my $printed = sql(q{
	SELECT string_agg(concat_ws(' ', condition, relation, alias, index_name, node_type), E'\n')
	  FROM (SELECT DISTINCT plan_id FROM tacho.statement_plans WHERE plan_id IS NOT NULL) p, tacho.plan(p.plan_id::text)});
cmp_ok(scalar(() = $printed =~ /\?/g), '>', 200, 'EXPLAIN of tacho.plan shows constants as question marks');
is(join(' ', marks_in_text($printed)), '', 'EXPLAIN of tacho.plan shows no value');
is(join(' ', marks_in_text(sql("SELECT string_agg(s::text, ' ') FROM tacho.statements s"))), '', 'tacho.statements shows no value');

done_testing();
