# The postmaster is killed six times. The history before stays readable, and each outage
# has a marker with its exact bounds.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at tacho_cluster wait_for_ticks wait_for_marker server_ms);
use Test::More;
use Time::HiRes qw(usleep);

my $rounds = 6;
my $node = tacho_cluster('killed', interval => '100ms');

sub observed
{
	my ($since, $until) = @_;
	return $node->safe_psql('postgres',
		"SELECT ticks_observed FROM tacho.aas(since => $since, until => $until, bucket => '1 day')"
	);
}

# A server starts only when the last process of its earlier life has ended.
sub start_again
{
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $node->start(fail_ok => 1);
		$node->{_pid} = undef;
		usleep(100_000);
	}
	die 'the server does not start';
}

my @kept;
for my $round (1 .. $rounds)
{
	my $from = server_ms($node);
	wait_for_ticks($node, 10, $from);
	# the newest of ten ticks is later than this, so no earlier tick can still come
	my $to = $from + 800;
	my ($since, $until) = map { at($_) } ($from, $to);
	push @kept, [ $since, $until, observed($since, $until) ];
	$node->kill9;
	start_again();
	wait_for_marker($node, 'gap', $round);
}
wait_for_ticks($node, 10, server_ms($node));

is_deeply(
	[ map { observed($_->[0], $_->[1]) } @kept ],
	[ map { $_->[2] } @kept ],
	'every tick before a kill is still in the history');

my @gaps = split /\n/, $node->safe_psql('postgres',
	"SELECT quote_literal(period_start), quote_literal(period_end), detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'gap' ORDER BY period_start"
);
is(scalar(@gaps), $rounds, 'each kill is one gap');
my $tick = "interval '100 ms'";
for my $gap (@gaps)
{
	my ($since, $until, $detail) = split /\|/, $gap;

	is(observed("$since\::timestamptz", "$until\::timestamptz"),
		0, "nothing was observed from $since to $until");
	is(observed("$since\::timestamptz - $tick", "$since\::timestamptz"),
		1, 'the history has the tick before the gap');
	is(observed("$until\::timestamptz", "$until\::timestamptz + $tick"),
		1, 'the history has the tick after the gap');
	like($detail, qr/killed/, "the gap names its cause: $detail");
}

$node->stop;
done_testing();
