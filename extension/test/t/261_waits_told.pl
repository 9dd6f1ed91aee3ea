# The commands explain, report, live and mcp explain a wait event in the same words, which the dictionary
# has. (For the page see page/e2e/figures.e2e.ts.) The wait of an extension has the words of its type.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use POSIX qw(strftime);
use PostgreSQL::Test::Utils;
use TachoMcp qw(mcp mcp_program);
use TachoTerminal qw(live_program);
use Test::More;

my $live = live_program();
plan skip_all => 'there is no tacho-mcp' unless mcp_program();
my $place = PostgreSQL::Test::Utils::tempdir();
my $tape = "$place/shop";

sub tacho
{
	my (@arguments) = @_;
	my ($out, $error) = run_command([ $ENV{TACHO_PROGRAM}, @arguments ]);

	is($error, '', "tacho @arguments[0 .. 1]");
	return $out;
}

# The last minute: five sessions wait for a transaction, one for a lock that an extension named.
my $rows = "time,pid,backend_start,state,wait_event_type,wait_event,query_id,blocked_by\n";
foreach my $second (time - 60 .. time - 1)
{
	my $time = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $second);
	$rows .= "$time,$_,2026-01-01T00:00:00Z,active,Lock,transactionid,7,900\n" foreach 11 .. 15;
	$rows .= "$time,21,2026-01-01T00:00:00Z,active,LWLock,CubeCache,8,\n";
}
append_to_file("$place/rows.csv", $rows);
command_ok([ $ENV{TACHO_PROGRAM}, 'import', 'sessions', "$place/rows.csv", '--tape', $tape, '--node', '00000000000000aa' ], 'a history');

# The lines of the dictionary about a name, by their first word. If it has two entries, the first counts.
sub said
{
	my ($name) = @_;
	my ($entry) = split /\n\n/, tacho('explain', 'wait', $name);

	return map { /^  (\w+) +(.*)/ ? ($1 => $2) : () } split /\n/, $entry;
}
my %transaction = said('Lock:transactionid');
my %extension = said('LWLock:CubeCache');
like($transaction{is}, qr/^A .* waits for .*\.$/, 'a wait is explained');
my %type = said('LWLock');
is($extension{is}, $type{is}, 'a wait that PostgreSQL does not list has the words of its type');
my @names = ([ 'Lock:transactionid', \%transaction ], [ 'LWLock:CubeCache', \%extension ]);

foreach my $format (qw(markdown html))
{
	my $report = tacho('report', '--tape', $tape, '--since', '2m', '--format', $format);
	like($report, qr/\Q$_->[0]\E.*?\Q$_->[1]{is}\E/s, "the report as $format explains $_->[0]") foreach @names;
}

my $client = mcp('--tape', $tape);
foreach my $each (@names)
{
	my ($name, $said) = @$each;
	my ($wait) = @{ $client->call('explain_wait', name => $name)->{waits} };
	is_deeply([ @$wait{qw(is normal next)} ], [ @$said{qw(is normal next)} ], "tacho mcp explains $name");
}
my ($remark) = map { $_->{remark} } @{ $client->call('explain_wait', name => 'LWLock:CubeCache')->{waits} };
like($remark, qr/extension/, '... and says that the name is of an extension');
$client->end;

# The terminal has room for the begin of the text.
my $terminal = TachoTerminal->new('waits', "exec '$live' --tape '$tape' --tz UTC --ascii");
$terminal->shows(qr/^ wait classes/m, 'tacho live begins');
$terminal->keys('e');
foreach my $each (@names)
{
	my ($name, $said) = @$each;
	my $begin = substr $said->{is}, 0, 60;
	$terminal->shows(qr/^\Q$name\E  \Q$begin\E/m, "... and explains $name when its row is chosen");
	$terminal->keys('Down');
}
$terminal->end;
done_testing();
