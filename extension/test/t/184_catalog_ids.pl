# Adds a line to the catalog. At the end of its list with the next id, the arrays of the
# extension grow with it. Anywhere else, or with an id in use, the extension does not
# compile.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Copy;
use File::Path qw(make_path);
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../../..";
my $dir = PostgreSQL::Test::Utils::tempdir();

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }

my ($cc) = split ' ', config('--cc');
my @compile = ($cc, '-std=gnu99', '-w', '-fsyntax-only', '-I', config('--includedir-server'),
	split(' ', config('--cppflags')), '-I', "$dir/extension/src");

make_path("$dir/catalog");
for (glob("$root/extension/src/*.h $root/extension/src/*/*.h $root/extension/src/history/schema.c"))
{
	my $copy = $dir . substr($_, length $root);
	make_path(dirname($copy));
	copy($_, $copy) or die $!;
}

# The compiler's messages about schema.c, and about a claim on the sizes, with this file
# of the catalog changed.
sub compiled
{
	my ($file, $change, $claim) = @_;

	for my $each (qw(samples.h counters.h settings.h))
	{
		local $_ = slurp_file("$root/catalog/$each");
		$change->() if $each eq $file;
		unlink "$dir/catalog/$each";
		append_to_file("$dir/catalog/$each", $_);
	}
	unlink "$dir/extension/src/claim.c";
	append_to_file("$dir/extension/src/claim.c",
		'#include "history/schema.c"' . "\n" . 'StaticAssertDecl(' . ($claim // 'true') . ', "claim");' . "\n");
	my ($out, $err) = run_command([ @compile, "$dir/extension/src/claim.c" ]);
	return $err;
}

my $appended = qr/append at the end of its list/;
# the next ids, after all existing ones
my $last_column = (slurp_file("$root/catalog/samples.h") =~ /^COLUMN\(sample, (\d+),/mg)[-1];
my ($last_counter, $kind) = (slurp_file("$root/catalog/counters.h") =~ /^COUNTER\((\d+),[^,]*,[^,]*,[^,]*, (\w+),/mg)[-2, -1];
$last_counter += { HISTOGRAM => 23, LONG => 11 }->{$kind} // 0;
my ($next_column, $next_counter) = ($last_column + 1, $last_counter + 1);

my $counter = 'COUNTER(NEXT, probes, int64, one, SUM, exec, 15, "probes")' =~ s/NEXT/$next_counter/r;
my $column = "COLUMN(sample, $next_column, probe, UINT, none, NONE, \"a probe\")";

is(compiled('', sub { }, "MODEL_MAX_COLUMN == $last_counter && MODEL_MAX_SAMPLE_COLUMN == $last_column"),
	'', 'the catalog compiles');
is(compiled('counters.h', sub { $_ .= "$counter\n" }, "MODEL_MAX_COLUMN == $next_counter && sizeof(((Section *) 0)->numbers) == ($next_counter + 1) * sizeof(uint64 *)"),
	'', 'a counter at the end of the list compiles');
like(compiled('counters.h', sub { s/^(COUNTER\(27,)/$counter\n$1/m }),
	$appended, 'a counter amid the list does not compile');
like(compiled('counters.h', sub { $_ .= $counter =~ s/$next_counter/80/r . "\n" }),
	$appended, 'a counter with an id of the histogram does not compile');
like(compiled('counters.h', sub { $_ .= $counter =~ s/$next_counter/256/r . "\n" }),
	qr/ids have one byte/, 'a counter beyond the ids of a frame does not compile');
is(compiled('samples.h', sub { s/^(COLUMN\(sample, $last_column,.*\n)/$1$column\n/m }, "MODEL_MAX_SAMPLE_COLUMN == $next_column"),
	'', 'a column at the end of its table compiles');
like(compiled('samples.h', sub { s/^(COLUMN\(sample, 8,)/$column\n$1/m }),
	$appended, 'a column amid its table does not compile');
like(compiled('samples.h', sub { my $taken = $column =~ s/$next_column/$last_column/r; s/^(COLUMN\(sample, $last_column,.*\n)/$1$taken\n/m }),
	$appended, 'a column with an id that is taken does not compile');
like(compiled('samples.h', sub { s/^(COLUMN\(statement_stats, 3,.*\n)/$1COLUMN(statement_stats, 16, probe, UINT, none, NONE, "a probe")\n/m }),
	qr/is the id of a counter, too/, 'a key of statistics with the id of a counter does not compile');
is(compiled('samples.h', sub { s/^(LABEL\(category, 1)/TABLE(70, probe, "probes")\nCOLUMN(probe, 1, time, TIME, none, NONE, "when")\n$1/m }, 'MODEL_MAX_TABLE == 70'),
	'', 'a table at the end of the list compiles');
like(compiled('samples.h', sub { s/^(TABLE\(20,)/TABLE(70, probe, "probes")\n$1/m }),
	$appended, 'a table amid the list does not compile');
done_testing();
