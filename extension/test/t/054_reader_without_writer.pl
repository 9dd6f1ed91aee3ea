# Without a writer nothing is recorded. An answer about the present then comes with the
# reason.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster);
use Test::More;

my $node = stand_in_cluster('without', writer => 0);
my $reason = qr/the tape writer .* ended with exit code 1/;

behave($node, q{answer([ 'answered', 'yes' ])});
ok( $node->poll_query_until('postgres', q{
SELECT reason ~ 'exit code 1' FROM (SELECT value AS reason FROM tacho.status() WHERE metric = 'reason') s}),
	'status() has the reason why nothing is recorded');
is( $node->safe_psql('postgres', q{
SELECT value FROM tacho.status() WHERE metric IN ('recording', 'frames_written', 'answered')}),
	"off\n0\nyes", 'status() has the facts of the server first, then the facts of the tape');

my ($stdout, $stderr);
$node->psql('postgres', 'SELECT value FROM tacho.summary()',
	stdout => \$stdout, stderr => \$stderr);
is($stdout, 'yes', 'a question about the present is answered');
like($stderr, qr/NOTICE:  history is not being recorded: $reason$/,
	'the answer about the present has a notice');

$node->psql('postgres', q{SELECT value FROM tacho.summary(until => now())},
	stdout => \$stdout, stderr => \$stderr);
is("$stdout|$stderr", 'yes|', 'an answer about the past has no notice');

behave($node, q{print STDERR "ERROR\t58P01\tno such directory\n"; exit 1});
$node->psql('postgres', q{SELECT value FROM tacho.summary(until => now())}, stderr => \$stderr);
like($stderr, qr/ERROR:  no such directory\nHINT:  History is not being recorded: $reason\.$/,
	'without any history the reason is the hint');

$node->stop;
done_testing();
