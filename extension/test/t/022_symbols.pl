# The library shows the symbols that PostgreSQL looks up, and no others: another
# library cannot be bound to a function of ours, nor ours to one of its own.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('symbols');
my $library = $node->config_data('--pkglibdir') . '/tacho.so';
my @visible = map { (split)[-1] } split /\n/, qx(nm -D --defined-only '$library');

# functions of the SQL objects, each with the record of its calling convention
my @functions = split /\n/,
  $node->safe_psql('postgres', q{SELECT DISTINCT prosrc FROM pg_proc WHERE probin = '$libdir/tacho'});

# functions of contrib's SQL objects, which are bound to this library on request
push @functions, map { "pg_stat_statements$_" } '', qw(_1_2 _1_3 _1_8 _1_9 _1_10 _1_11 _1_12 _1_13
  _info _reset _reset_1_7 _reset_1_11);
my @expected = (
	qw(Pg_magic_func _PG_init tacho_sampler_main tacho_catalog_main statements_saver_main),
	map { ($_, "pg_finfo_$_") } @functions);
is_deeply([ sort @visible ], [ sort @expected ], 'the library shows only symbols that PostgreSQL looks up');

$node->stop;
done_testing();
