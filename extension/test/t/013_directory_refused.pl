# Refused directories: those that belong to the server, and one that another server
# uses.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('refused');

my $space = $node->basedir . '/space';
mkdir $space or die "mkdir: $!";
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$space'");

for my $bad ('base', 'base/../base/tacho', 'global', 'pg_tblspc/1/x',
	'pg_wal/tacho', '.', $node->data_dir . '/base/1',
	"$space", "$space/tacho")
{
	my (undef, undef, $error) = $node->psql('postgres',
		"ALTER SYSTEM SET tacho.directory = '$bad'");
	like($error,
		qr/ERROR:  directory "\Q$bad\E" cannot be used for "tacho.directory"\nDETAIL:  It belongs to the server \([\w ]+\).\nHINT:  Use a separate directory/,
		"\"$bad\" is refused");
}
my $long = 'x' x 900;
my $bytes = length($node->data_dir) + 1 + 900;
my (undef, undef, $too_long) = $node->psql('postgres',
	"ALTER SYSTEM SET tacho.directory = '$long/$long'");
like($too_long,
	qr/ERROR:  the path in "tacho.directory" is too long\nDETAIL:  It has ${\($bytes + 901)} bytes; at most 959 are allowed./,
	'a path that is too long is refused');
my ($code) = $node->psql('postgres',
	q{ALTER SYSTEM SET tacho.directory = 'base_of_tacho'});
is($code, 0, 'a directory whose name begins like a refused one is accepted');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET tacho.directory');
my (undef, undef, $error) = $node->psql('postgres',
	q{ALTER SYSTEM SET tacho.program = 'bin/tacho'});
like($error, qr/ERROR:  "tacho.program" must be an absolute path or empty/,
	'a relative program is refused');
(undef, undef, $error) = $node->psql('postgres', q{SET tacho.no_such = 1});
like($error, qr/ERROR:  invalid configuration parameter name "tacho.no_such"/,
	'settings with the prefix tacho are reserved');

$node->stop;
$node->append_conf('postgresql.conf', "tacho.directory = 'pg_wal/tacho'");
$node->start;
is($node->safe_psql('postgres', 'SELECT 1'), '1',
	'a server with a refused directory starts');
is(metric($node, 'recording'), 'off', 'a server with a refused directory does not record');
is( metric($node, 'reason'),
	'directory "pg_wal/tacho" is refused: it belongs to the server (pg_wal)',
	'status() names the refused directory');
is( $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'tacho sampler'}),
	'0',
	'a server with a refused directory has no sampler');
ok(!-e $node->data_dir . '/pg_wal/tacho', 'the refused directory was not made');
like(slurp_file($node->logfile),
	qr/WARNING:  directory "pg_wal\/tacho" cannot be used for "tacho.directory"/,
	'the log warns of the refused directory');
$node->stop;

my $shared = $node->basedir . '/shared';
$node->append_conf('postgresql.conf', "tacho.directory = '$shared'");
$node->start;
ok(wait_for_metric($node, 'frames_written', 'value::bigint > 0'),
	'a directory outside the data directory is recorded into');
my $other = tacho_cluster('other', conf => "tacho.directory = '$shared'");
ok(wait_for_metric($other, 'reason',
		qq{value = 'directory "$shared" is in use by another tape writer'}),
	'status() of a second server says that the directory is in use');
$node->stop;
ok(wait_for_metric($other, 'recording', "value = 'on'"),
	'the second server records when the directory is free');
$other->stop;

done_testing();
