# A history with a damaged column: functions answer without the group and warn.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('damaged');
my $tape = $node->data_dir . '/tacho';

# Two hours of another recorder.
my $csv = "time,pid,wait_event_type,wait_event,database\n";
foreach my $hour (0 .. 1)
{
	$csv .= sprintf("2026-01-01T0%d:00:%02dZ,1,IO,DataFileRead,shop\n", $hour, $_) for (0 .. 59);
}
my $import = "$FindBin::RealBin/../data/import.sh";
IPC::Run::run([ $import, $tape, 'abc' ], '<', \$csv) or die 'could not import';

# Flips a bit of the sessions of the samples of the second hour (docs/format.md).
my ($file) = glob "$tape/9*.tape";
my $bytes = slurp_file($file);
my $at = -1;
while (($at = index($bytes, "\xF1TCK", $at + 1)) >= 0)
{
	last if substr($bytes, $at + 4, 1) eq "\x03" && substr($bytes, $at + 6, 3) eq "\x16\x02\x02";
}
cmp_ok($at, '>', 0, 'the damaged column is in the file');
substr($bytes, $at + 24, 1) ^= "\x01";
open my $out, '>:raw', $file or die "$file: $!";
print $out $bytes;
close $out or die "$file: $!";

# Answer and messages of a question about both hours.
sub ask
{
	my ($columns, $function, $first, $more) = @_;
	my ($stdout, $stderr);
	my $window = q{since => '2026-01-01 00:00Z', until => '2026-01-01 02:00Z', node => '0000000000000abc'};
	$node->psql(
		'postgres',
		"SELECT $columns FROM tacho.$function($first$window$more)",
		stdout => \$stdout,
		stderr => \$stderr);
	return ($stdout, $stderr);
}

my $shop = q{, database => 'shop'};
my ($stdout, $stderr) = ask('key, backend_seconds', 'top', q{'wait_event', }, $shop);
is($stdout, 'IO:DataFileRead|60.0000', 'top() answers with what can be read');
like(
	$stderr,
	qr/WARNING:  skipped a damaged group of the history\nDETAIL:  File "9\d+\.tape": damaged chunk at offset $at\. Group 2 was skipped, ticks 3601 to 3660, .* This time counts as unobserved\.\nHINT:  Run "tacho inspect"/,
	'top() warns of the damage');
unlike($stderr, qr/ERROR/, 'top() of a damaged column is no error');
($stdout, $stderr) = ask('ticks_observed', 'aas', '', $shop);
is($stdout, '60', 'the time of the damaged group counts as unobserved');
like($stderr, qr/WARNING:  skipped a damaged group/, 'every answer counts that time as unobserved');
($stdout, $stderr) = ask('ticks_observed', 'aas', '', '');
is($stdout, '120', 'totals answer for the whole window');
is($stderr, '', 'an answer without the damaged column has no warning');
$node->stop;

done_testing();
