# More active sessions than the sampler may open files for. The kinds of some are not known; one
# of these gets its kind when other sessions end.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoLocks qw(session);
use TachoTest qw(at server_ms tacho_cluster);
use Test::More;

plan skip_all => 'no /proc/self/schedstat' unless -r '/proc/self/schedstat';

# 54 descriptors, and a third of them for files like these: two of each session
my $node = tacho_cluster('few', conf => 'max_files_per_process = 64');
sub sql { return $node->safe_psql('postgres', $_[0]) }
my $spinner = q{FROM pg_stat_activity WHERE application_name = 'spinner' AND query LIKE 'DO%'};

my @spinners = map { session($node, 'spinner') } 1 .. 14;
$_->send('DO $$ BEGIN LOOP END LOOP; END $$') for @spinners;
$node->poll_query_until('postgres', "SELECT count(*) = 14 $spinner") or die 'no sessions';
my @pids = split /\n/, sql("SELECT pid $spinner");
# a stopped process has the kind uninstrumented, and needs no CPU
kill 'STOP', @pids;

my $since = at(server_ms($node) + 300);
my $unread = "SELECT min(pid) FROM (SELECT pid FROM tacho.samples(since => $since, n => null, application => 'spinner')
	GROUP BY pid HAVING count(*) >= 5 AND bool_and(cpu = 'CPU*')) s";
$node->poll_query_until('postgres', "SELECT ($unread) IS NOT NULL") or die 'all kinds are known';
my $pid = sql($unread);
my @others = grep { $_ != $pid } @pids;
sql("SELECT pg_terminate_backend($_)") for @others;
kill 'CONT', @others;
ok( $node->poll_query_until('postgres', qq{SELECT count(*) > 0 FROM tacho.samples(since => $since, n => null,
		application => 'spinner') WHERE pid = $pid AND cpu = 'uninstrumented'}),
	'a session gets its kind when descriptors are free again');

kill 'CONT', $pid;
$node->stop('immediate');
done_testing();
