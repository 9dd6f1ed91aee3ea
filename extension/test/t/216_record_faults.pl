# tacho-record over a network that holds, delays, cuts and refuses bytes, and across a
# failover to a standby. Recording continues, and each hole has a marker with its
# reason.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoProxy;
use TachoRecord qw(ask markers moment record record_program ticks wait_until);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('one');
$node->init(allows_streaming => 1);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher');

sub socket_of { my ($server) = @_; return $server->host . '/.s.PGSQL.' . $server->port }

my $proxy = TachoProxy->start(socket_of($node));
my $tape = $node->basedir . '/recorded';
my $recorder = record('host=127.0.0.1 port=' . $proxy->port . ' dbname=postgres user=watcher', $tape);
$SIG{__DIE__} = sub { diag($recorder->log) unless $^S };

# Waits for ticks from now on.
sub goes_on
{
	my ($least, $server, $of) = @_;
	my $since = moment($server // $node);

	wait_until('ticks', sub { ticks($of // $tape, $since) >= $least });
	return;
}

# Gaps caused by a fault: on a busy machine any answer may be late, too.
my $late = qr/^(the server answered after \d+ ms|the recorder was delayed)$/;
sub gaps { return grep { !/$late/ } markers($tape, 'gap') }

goes_on(10);
is_deeply([ gaps() ], [], 'a proxy that passes all bytes leaves no gap');

# Held bytes, a cut answer and refused connections end with a gap that names them.
foreach my $fault (
	[ 'bytes that are held', qr/^server did not answer within 5000 ms/, 'stall' ],
	[ 'an answer that is cut', qr/connection to server was lost|closed the connection/, 'cut', 150 ],
	[ 'connections that are refused', qr/connection to server was lost|closed the connection|could not connect/, 'refuse' ])
{
	my ($what, $reason, @how) = @$fault;
	my ($gaps, $said) = (scalar(() = gaps()), length $recorder->log);

	$proxy->set(@how);
	wait_until($what, sub { substr($recorder->log, $said) =~ /not recording/ });
	$proxy->set('pass');
	wait_until("a gap of $what", sub { (() = gaps()) > $gaps });
	like((gaps())[-1], $reason, "$what: the gap has its reason");
	goes_on(5);
}

# Slow connections cause holes, too, without a failure.
foreach my $fault ([ 'bytes that are delayed', 'delay', 250 ], [ 'bytes that come one by one', 'trickle' ])
{
	my ($what, @how) = @$fault;

	$proxy->set(@how);
	goes_on(3);
	$proxy->set('pass');
	goes_on(5);
}
wait_until('a gap', sub { grep { /^the server answered after \d+ ms$/ } markers($tape, 'gap') });
ok(1, 'the hole that a late answer leaves has a marker');
is_deeply([ markers($tape, 'clock step') ], [], 'a late answer is not a step of the clock');
is_deeply([ map { scalar markers($tape, $_) } qw(start stop) ], [ 1, 0 ], 'all faults are within one life of the server');
is_deeply([ grep { $_->{ticks_observed} > 1 } ask($tape, 'timeline', '--since', '5m', '--bucket', '100ms') ], [],
	'no slot has two ticks');

is($recorder->end('TERM'), 0, 'the recorder ends');
my $system = $node->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()');

SKIP:
{
	skip 'this installation cannot stream replication', 8
	  if $node->psql('postgres', q{LOAD 'libpqwalreceiver'}) != 0;
	my $standby = PostgreSQL::Test::Cluster->new('two');
	$node->backup('base');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->start;
	# One recorder knows both addresses, the other one an address that will lead
	# elsewhere.
	my %place = (list => $node->basedir . '/list', address => $node->basedir . '/address');
	my $both = sprintf 'host=%s,%s port=%s,%s target_session_attrs=read-write dbname=postgres user=watcher',
	  map { $node->$_, $standby->$_ } qw(host port);
	my %recorder = (
		list => record($both, $place{list}),
		address => record('host=127.0.0.1 port=' . $proxy->port . ' dbname=postgres user=watcher', $place{address}));
	goes_on(5, $node, $place{$_}) foreach sort keys %place;
	$node->wait_for_catchup($standby);
	$node->stop('immediate');
	foreach my $name (sort keys %place)
	{
		wait_until("a fault by $name", sub { $recorder{$name}->log =~ /not recording/ });
	}
	$standby->promote;
	$proxy->lead(socket_of($standby));
	foreach my $name (sort keys %place)
	{
		goes_on(5, $standby, $place{$name});
		my @starts = markers($place{$name}, 'start');
		is(@starts, 2, "by $name: a failover begins a new life");
		like($starts[1], qr/^connected to another server of the same system, PostgreSQL .*, primary, system $system, host /,
			"by $name: the marker of the new life says what happened");
		# a busy machine has gaps of its own
		like((grep { !/was delayed/ } markers($place{$name}, 'gap'))[-1], qr/connection to server was lost|closed the connection|could not connect|immediate shutdown/,
			"by $name: the gap before the new life has its reason");
		is($recorder{$name}->end('TERM'), 0, "by $name: the recorder ends");
	}
	$standby->stop;
}

$proxy->stop;
done_testing();
