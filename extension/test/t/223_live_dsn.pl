# tacho live through a connection: the same sessions as in the files, the question as a
# psql command, and a server that goes away and comes back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TachoLocks qw(session wait_until_locked);
use TachoTerminal qw(live_program);
use TachoTest qw(tacho_cluster);

my $live = live_program();
my $node = tacho_cluster('live_dsn');
my $conninfo = $node->connstr('postgres');

my ($holder, $waiter) = map { session($node, "s_$_") } qw(holder waiter);
$holder->run('BEGIN; SELECT pg_advisory_lock(7)');
$waiter->send('SELECT pg_advisory_lock(7)');
wait_until_locked($node, 's_waiter');

my $terminal = TachoTerminal->new('live_dsn', qq{exec '$live' --dsn "shop=$conninfo" --tz UTC --ascii});
$terminal->shows(qr/^ wait classes/m, 'the first view is shown');
$terminal->line('/application=s_waiter');
$terminal->keys('s');
$terminal->shows(qr/ s_waiter/, 'the session that waits is listed');

# The command that w prints gives an answer.
$terminal->keys('w');
my $screen = $terminal->shows(qr/psql '.*tacho\.sessions/s, 'the question for psql is shown');
like($screen, qr/application => /, 'the filter is shown');
$terminal->keys('w');

$node->stop('fast');
$terminal->shows(qr/could not connect|connection was lost|terminating connection/, 'a server that is gone is shown');
$node->start;
$terminal->shows(qr/^ sessions/m, 'the server that is back answers again');
$terminal->keys('x');
my $again = session($node, 's_again');
$again->send('SELECT pg_sleep(600)');
$terminal->shows(qr/ s_again/, 'sessions of the server that is back are listed');
$terminal->end;

$node->stop('immediate');
done_testing();
