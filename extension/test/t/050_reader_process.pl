# A reader function runs the program. Tests its use of the program's output, messages
# and every kind of bad end.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster);
use Test::More;

my $node = stand_in_cluster('process');
my $program = $node->safe_psql('postgres', 'SHOW tacho.program');

# Rows of a call when the program runs $code.
sub rows
{
	my ($code, $call) = @_;

	behave($node, $code);
	return $node->safe_psql('postgres',
		'SELECT * FROM ' . ($call // 'tacho.summary()'));
}

# Messages of psql with SQLSTATE, detail and hint. The default call ends in the past, so
# there is no notice about the present.
sub messages
{
	my ($code, $call) = @_;
	my $stderr;

	behave($node, $code);
	$node->psql('postgres',
		"\\set VERBOSITY verbose\n"
		  . 'SELECT * FROM ' . ($call // 'tacho.summary(until => now())') . ';',
		on_error_stop => 0,
		stderr => \$stderr);
	$stderr =~ s/^psql:<stdin>:\d+: //mg;
	$stderr =~ s/^(LOCATION|CONTEXT):.*\n?//mg;
	chomp $stderr;
	return $stderr;
}

# The program gets the arguments unchanged. If tz is not given, it gets the session's
# time zone.
$ENV{PGTZ} = 'Europe/Berlin';
is( rows(<<'END', q{tacho.samples(since => '2026-01-02 03:04:05.6+01', n => 7, application => E'a''b"\t$(id);', by_leader => true)}),
s/\t/\\t/ for @ARGV;
my @columns = qw(sample_time tick pid backend_start leader backend_type
  category database username application client_addr state wait_event_type
  wait_event cpu query_id plan_id tags query_start xact_start state_change xmin_age
  xid_age progress_command progress_relation blocked_by weight_ms query_text);
print join("\t", @columns), "\n";
print join("\t", ('\N') x 27, $_), "\n" for @ARGV;
print "\\.\n";
END
	join("\n", map { '|' x 27 . $_ } 'query', 'samples',
		'--tape=' . $node->data_dir . '/tacho',
		'--format=copy',
		'--memory-limit-mb=512',
		'--since=2026-01-02T02:04:05.600000Z',
		'--n=7',
		qq{--application=a'b"\t\$(id);},
		'--scope=load',
		'--session-tz=Europe/Berlin',
		'--by-leader=true'),
	'arguments');
delete $ENV{PGTZ};
is(rows(q{answer(map { [ 'argument', $_ ] } grep { /bucket/ } @ARGV)},
		q{tacho.summary()}),
	'', 'arguments that are null are left out');
like(
	messages(q{print STDERR grep({ /bucket/ } @ARGV), "\n"; exit 1},
		q{tacho.aas(bucket => '1 day 00:00:01.5')}),
	qr/--bucket=86401500000us/, 'an interval is passed in microseconds');

# The program gets a clean environment, descriptors and signals.
is( rows(q{answer(map { [ $_, $ENV{$_} ] } grep { !/TZDIR/ } sort keys %ENV)}),
	'LC_ALL|C', 'the program has a clean environment');
is( rows(<<'END'), "group|own\nstdin|/dev/null\nblocked|\nignored|\nopen|", 'the program has no open file of the server');
my ($blocked, $ignored) = map { /^Sig(?:Blk|Ign):\s*(\w+)/ ? hex $1 : () }
  do { open my $f, '<', '/proc/self/status'; <$f> };
# Perl itself ignores SIGFPE (8); 32 and 33 belong to the C library
my @numbers = grep { $_ != 8 } 1 .. 31;
opendir my $fds, '/proc/self/fd';
my @others = grep { !m{/behaviour\.pl$|/standin/tacho$|/proc/\d+/fd$} }
  map { readlink("/proc/self/fd/$_") // () } grep { /^\d+$/ && $_ > 2 } readdir $fds;
answer(
	[ 'group', getpgrp() == $$ ? 'own' : 'of the server' ],
	[ 'stdin', readlink '/proc/self/fd/0' ],
	[ 'blocked', join ' ', grep { $blocked >> ($_ - 1) & 1 } @numbers ],
	[ 'ignored', join ' ', grep { $ignored >> ($_ - 1) & 1 } @numbers ],
	[ 'open', join ' ', @others ]);
END

# Rows
is(rows(<<'END'), "a\tb\nc\\d\r|\n|\\N", 'escapes and nulls are read');
print <<'ROWS';
metric	value
a\tb\nc\\d\r	\N
	\\N
\.
ROWS
END
is( rows(q{print "value\tnew\tmetric\nv\tn\tm\n\\\\.\n"}),
	'm|v', 'columns are matched by name, other columns are left out');
is(rows(q{answer()}), '', 'an answer without rows is empty');
is( rows(q{print STDERR 'x' x 1e6; answer(map { [ $_, 'y' x 1000 ] } 1 .. 50000)},
		q{(SELECT count(*), sum(length(value)), sum(metric::int) FROM tacho.summary()) x}),
	'50000|50000000|1250025000',
	'an answer larger than work_mem is complete beside many messages');
is( rows(q{answer([ 'long', 'y' x 20e6 ])},
		q{(SELECT metric, length(value) FROM tacho.summary()) x}),
	'long|20000000', 'a row of megabytes is complete');

# Unexpected output
my $versions =
  'HINT:  The tacho program and the extension have different versions. Install both from the same release.';
is( messages(q{print "metric\nx\n\\\\.\n"}),
	qq{ERROR:  08P01: output of the tacho program has no column "value"\n$versions},
	'an answer without a declared column is an error');
is( messages(q{print "metric\tvalue\na\tb\tc\n\\\\.\n"}),
	"ERROR:  08P01: row 1 of the output of the tacho program has 3 columns instead of 2\n$versions",
	'a row with too many columns is an error');
is( messages(q{answer([ 'a', 'b' ], ['c'])}),
	"ERROR:  08P01: row 2 of the output of the tacho program has 1 columns instead of 2\n$versions",
	'a row with too few columns is an error');
is( messages(q{print "metric\tvalue\na\tb\n"}),
	"ERROR:  08P01: output of the tacho program is incomplete\n"
	  . 'DETAIL:  It ended after 1 rows without the end marker.',
	'an answer without its end is an error');
is( messages(q{print "metric\tvalue\na\tb\n\\\\."}),
	"ERROR:  08P01: output of the tacho program is incomplete\n"
	  . 'DETAIL:  It ended after 1 rows without the end marker.',
	'an answer whose end is cut is an error');
is( messages(q{1}),
	"ERROR:  08P01: output of the tacho program is incomplete\n"
	  . 'DETAIL:  It ended after 0 rows without the end marker.',
	'a program without output is an error');
is( messages(q{answer(); print "more\n"}),
	"ERROR:  08P01: output of the tacho program continues after its end marker\n$versions",
	'output after the end is an error');
like( messages(q{print map { chr(int(rand(256))) } 1 .. 1e6; print "\n"}),
	qr/^ERROR:  08P01: output of the tacho program has no column "metric"/,
	'random bytes are an error');
is( messages(q{print 'x' x 1e6 while 1}),
	'ERROR:  08P01: row of the output of the tacho program is longer than 64 MB',
	'a row without its end is an error');
is( messages(q{print join("\t", qw(marker_time kind period_start period_end detail command object_class object_oid
		object_name database username application client_addr old_value new_value outcome left_out)), "\nsoon\n\\\\.\n"},
		'tacho.markers(until => now())'),
	'ERROR:  22007: invalid input syntax for type timestamp with time zone: "soon"',
	'a value of another type is an error');

# Messages
is( messages(q{print STDERR "ERROR\t42704\tunknown dimension \"x\"\tIt is\\\\na detail.\tAvailable: y.\n"; exit 1}),
	qq{ERROR:  42704: unknown dimension "x"\nDETAIL:  It is\na detail.\nHINT:  Available: y.},
	'an error of the program has its SQLSTATE, detail and hint');
is( messages(q{print STDERR "NOTICE\t00000\tnote\t\\\\N\t\\\\N\nWARNING\t01000\tmind\t\tCare.\n"; answer()}),
	"NOTICE:  00000: note\nWARNING:  01000: mind\nHINT:  Care.",
	'notices and warnings of the program are raised');
is( messages(q{print STDERR "ERROR\tnonsense\tit failed\n"; exit 1}),
	'ERROR:  38000: it failed', 'an invalid SQLSTATE becomes an internal error');

# Bad ends
is( messages(q{print STDERR "thread panicked\nat line 3\n"; exit 101}),
	qq{ERROR:  38000: program "$program" failed with exit code 101\nDETAIL:  thread panicked\nat line 3},
	'an exit code without a message is an error');
is( messages(q{answer(); exit 2}),
	qq{ERROR:  38000: program "$program" failed with exit code 2\n$versions},
	'an exit code after a complete answer is an error');
is( messages(q{answer(); kill 'KILL', $$}),
	qq{ERROR:  38000: program "$program" was terminated by signal 9: Killed\n}
	  . 'HINT:  It was killed, or the system ran out of memory. See the kernel log.',
	'a killed program is an error');
is( messages(q{print "metric\tvalue\n"; kill 'SEGV', $$}),
	qq{ERROR:  38000: program "$program" was terminated by signal 11: Segmentation fault\n}
	  . 'HINT:  It may have been refused memory (limit: 512 MB). Use a shorter window or fewer rows.',
	'a crashed program is an error');
is( messages(q{print STDERR "memory allocation of 999 bytes failed\n"; kill 'ABRT', $$}),
	"ERROR:  53200: tacho program ran out of memory\n"
	  . "DETAIL:  The limit is 512 MB.\n"
	  . 'HINT:  Use a shorter window or fewer rows.',
	'a program without memory is an error');

# status() answers even then, with the failure as a row.
like(
	rows(q{print STDERR "ERROR\t58030\tthe tape is torn\t\tMend it.\n"; exit 1}, 'tacho.status()'),
	qr/^tape_error\|the tape is torn\ntape_error_hint\|Mend it\.$/m,
	'status() says that the tape cannot be read');

# Arguments that are refused before a program starts
for my $case (
	[ q{tacho.aas(since => 'infinity')}, qq{ERROR:  22023: argument "since" must not be infinite\nHINT:  Omit it to use its default.} ],
	[ q{tacho.aas(until => '20000-01-01')}, qq{ERROR:  22008: argument "until" is out of range\nDETAIL:  It must lie between the years 1 and 9999.} ],
	[ q{tacho.aas(bucket => '1 month')}, qq{ERROR:  22023: argument "bucket" must be an interval of fixed length\nDETAIL:  Months and years differ in length.\nHINT:  Use days or hours.} ],
	[ q{tacho.aas(bucket => '2147483647 days')}, 'ERROR:  22008: argument "bucket" is out of range' ],
	[ q{tacho.aas(application => repeat('x', 200000))}, qq{ERROR:  54000: could not start program "$program": Argument list too long\nHINT:  The arguments of the function are too long.} ])
{
	my ($call, $expected) = @$case;
	is(messages('die', $call), $expected, $call);
}

# A missing program; the server continues.
unlink $program;
is( messages('', 'tacho.aas()'),
	qq{ERROR:  38000: could not start program "$program": No such file or directory\n}
	  . 'HINT:  Install the tacho program beside the postgres program, or set tacho.program and restart the server.',
	'a missing program is an error with a hint');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the session goes on after all these errors');

$node->stop;
done_testing();
