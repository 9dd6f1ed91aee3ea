# Waiting for a query's answer ends when there is no server that could answer it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest 'tacho_cluster';
use Test::More;

my $node = tacho_cluster('down', start => 0);
local $PostgreSQL::Test::Utils::timeout_default = 2;

ok(!$node->poll_query_until('postgres', 'SELECT true'), 'a poll without a server ends without an answer');
done_testing();
