# tacho-record --raw-texts records the texts as sessions sent them, also of statements
# that never end or have no query identifier. Without it these have no text.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoLocks qw(session);
use TachoRecord qw(ask record record_program run_record ticks wait_until);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('raw');
$node->init;
$node->append_conf('postgresql.conf', "compute_query_id = on\n");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher');
my $conninfo = $node->connstr('postgres') . ' user=watcher';
my ($raw, $usual) = map { $node->basedir . "/$_" } qw(raw usual);
my @recorders = (record($conninfo, $raw, args => ['--raw-texts']), record($conninfo, $usual));

# The text of a session's newest sample, and whether it has a query identifier.
sub text
{
	my ($tape, $application) = @_;
	my ($sample) = ask($tape, 'samples', '--since', '2s', '--application', $application, '--n', 1);
	return $sample && ($sample->{query_text} // 'none') . ($sample->{query_id} ? ' (id)' : '');
}

my %text = (
	s_first => q{SELECT pg_sleep(600), 'a constant'},
	s_nameless => q{SELECT pg_sleep(601), 'another'},
	s_secret => q{SELECT pg_sleep(602), 'password'},
	s_long => q{SELECT pg_sleep(603), '} . 'x' x 2000 . q{'});
my %session = map { $_ => session($node, $_) } sort keys %text;
$session{$_}->run('SET compute_query_id = off') for qw(s_nameless s_secret s_long);
$session{$_}->send($text{$_}) for sort keys %text;
wait_until('texts', sub { 4 == grep { (text($raw, $_) // 'none') ne 'none' } keys %text });
is(text($raw, 's_first'), "$text{s_first}; (id)", 'a running query has a text with its constants');
is(text($raw, 's_nameless'), "$text{s_nameless};", 'a query without an identifier has a text');
is(text($raw, 's_secret'), q{SELECT pg_sleep(602), '***'}, 'a text that may hold a password is left out');
is(text($raw, 's_long'), substr($text{s_long}, 0, 1023) . "\x{2026}", 'a text that the server has cut is marked');
wait_until('the usual recorder', sub { 4 == grep { defined text($usual, $_) } keys %text });
is_deeply([ map { text($usual, $_) } sort keys %text ], [ 'none (id)', 'none', 'none', 'none' ], 'without raw texts a running query has no text');

# Another query of the same session has its own.
my $next = $session{s_next} = session($node, 's_next');
$next->run('SET compute_query_id = off');
$next->send('SELECT pg_sleep(2)');
wait_until('a text', sub { (text($raw, 's_next') // '') eq 'SELECT pg_sleep(2);' });
$next->send('SELECT pg_sleep(604)');
wait_until('the next text', sub { (text($raw, 's_next') // '') eq 'SELECT pg_sleep(604);' });
ok(1, 'the next query has its own text');

is((run_record($conninfo, '--tape', $usual, '--raw-texts', '--no-texts'))[0], 2, 'raw texts together with no texts are refused');
is($_->end('TERM'), 0, 'the recorder ends') for @recorders;
done_testing();
