# tacho.changes() names the cause of incidents whose load is waits, so that a busy machine
# does not hide it. bench/incidents.sh plays many more, which need a quiet machine.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoIncident qw(change_holds_lock incident load server set sql);
use TachoTest qw(tacho_session);
use Test::More;

my ($node, $deploy) = server('incidents', q{
	CREATE TABLE orders AS SELECT n AS id, n % 500 AS customer FROM generate_series(1, 5000) n;
	CREATE INDEX orders_customer ON orders(customer);
	CREATE TABLE accounts(id int primary key, n int); INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100) n;
	VACUUM ANALYZE orders}, "wal_level = replica\nmax_wal_senders = 3");
my $lookup = "\\set c random(0, 499)\nSELECT count(id) FROM orders WHERE customer = :c;\n";
my $pay = "\\set a random(1, 3)\nUPDATE accounts SET n = n + 1 WHERE id = :a;\n";

my $forgotten = tacho_session($node, app => 'forgotten');
incident('a transaction is left open', qr/^idle in transaction\|forgotten\|t$/,
	short => 1,
	load => [ load(4, 20, $pay) ],
	cause => sub { $forgotten->run('BEGIN'); $forgotten->run('UPDATE accounts SET n = 0 WHERE id < 4') },
	end => sub { $forgotten->run('ROLLBACK') });

# The session that keeps an advisory lock is idle, without a transaction.
my $worker = tacho_session($node, app => 'worker');
incident('an idle session keeps an advisory lock', qr/^idle in transaction\|worker\|t$/,
	short => 1,
	load => [ load(3, 20, "BEGIN;\nSELECT pg_advisory_xact_lock(7);\nEND;\n") ],
	cause => sub { $worker->run('SELECT pg_advisory_lock(7)') },
	end => sub { $worker->run('SELECT pg_advisory_unlock(7)') });

change_holds_lock($lookup, short => 1);

# Commits wait for a replica that is not there. Nearer is a change that does not wait. The clients
# choose among many rows: three that choose the same row wait for its lock instead.
my $any = "\\set a random(1, 100)\nUPDATE accounts SET n = n + 1 WHERE id = :a;\n";
incident('commits wait for a replica that is missing', qr/^commit setting\|synchronous_standby_names\|t$/,
	short => 1,
	load => [ load(3, 20, $any) ],
	cause => sub { set('synchronous_standby_names', 'missing') },
	near => sub { $deploy->run('SET synchronous_commit = local'); $deploy->run('CREATE INDEX news_late ON news(id)') },
	end => sub { set('synchronous_standby_names', '') });
done_testing();
