# status() answers whatever is wrong with the history, and says what.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric);
use TachoTest qw(server_ms tacho_cluster wait_for_ticks);
use Test::More;

plan skip_all => 'root reads everything' if $> == 0;
my $node = tacho_cluster('unreadable');
my $directory = $node->data_dir . '/tacho';

wait_for_ticks($node, 1, server_ms($node));
chmod 0, $directory or die "chmod: $!";
is( metric($node, 'tape_error'),
	qq{could not read directory "$directory": Permission denied (os error 13)},
	'status() says that the history cannot be read');
is(metric($node, 'tape_error_hint'),
	'The history files belong to the operating system user of the server.', 'the message has a hint');
isnt(metric($node, 'ticks_taken'), '', 'status() has the facts of the server beside the error');
my ($stdout, $stderr);
$node->psql('postgres', 'SELECT * FROM tacho.aas()', stderr => \$stderr);
like($stderr, qr/ERROR:  could not read directory/, 'a question about the history fails');
chmod 0700, $directory;
$node->psql('postgres', q{SELECT * FROM tacho.status(node => 'x')}, stderr => \$stderr);
like($stderr, qr/ERROR:  .*node/, 'an invalid argument of status() is an error');
$node->stop;

done_testing();
