# The server's table of prepared transactions is found in shared memory, and
# nothing is made there where a server has no such table.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $extension = "$FindBin::RealBin/../..";
my $library = PostgreSQL::Test::Utils::tempdir() . '/areas.so';

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -O1 -g -fPIC -shared -Wl,-Bsymbolic -o $library"
	  . " -I '" . config('--includedir-server') . "' -I '$extension/src' '$extension/test/unit/areas.c'") == 0
  or die 'could not build the library that looks for areas';

my $node = PostgreSQL::Test::Cluster->new('areas');
$node->init;
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 7');
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql("CREATE FUNCTION area_found(text, bigint) RETURNS bool STRICT LANGUAGE c AS '$library'");

# all areas of shared memory
my $areas = q{SELECT string_agg(concat(name, off, size), ',' ORDER BY off) FROM pg_shmem_allocations};
my $before = sql($areas);
my $table = q{FROM pg_shmem_allocations WHERE name = 'Prepared Transaction Table'};

is(sql("SELECT area_found(name, size) $table"), 't', 'an area is found by its name and size');
is(sql("SELECT area_found(name, size + 8) $table"), 'f', 'an area of another size is not found');
is(sql("SELECT area_found('No Such Table', size) $table"), 'f', 'an area of another name is not found');
is(sql(q{SELECT area_found('No Such Table', 8)}), 'f', 'an area is not found the second time either');
is(sql($areas), $before, 'a question for a missing area makes none');
is( (sql(q{SELECT area_found('No Such Table', 8) FROM generate_series(1, 10000)}) =~ tr/f//),
	10000, 'ten thousand questions find no area');
is(sql($areas), $before, 'ten thousand questions make no area');
$node->stop;
done_testing();
