# tacho mcp as docs/mcp.md describes it. A client starts it from the configuration of the page. A
# tape and a connection give the same answers, with texts and without.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Utils;
use TachoManual qw(blocks);
use TachoMcp qw(mcp mcp_program utc);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_until_in_history);
use Test::More;

plan skip_all => 'there is no tacho-mcp' unless mcp_program();
my $page = abs_path("$FindBin::RealBin/../../..") . '/docs/mcp.md';
plan skip_all => 'there is no docs directory' unless -e $page;
my $node = tacho_cluster('mcp', conf => "tacho.tables_interval = 500ms\ntacho.flush_interval = 100ms\ntacho.plan_text_rate = 10000\n"
	. "tacho.statements_interval = 1s\n");
my $tape = $node->data_dir . '/tacho';

sub sql { return $node->safe_psql('postgres', $_[0]) }

my $since = server_ms($node);
sql('CREATE TABLE item(id int, secret int); INSERT INTO item SELECT g, g FROM generate_series(1, 5000) g');
sql('SELECT sum(secret) FROM item');
my ($holder, $waiter) = map { tacho_session($node) } 1, 2;
$holder->run('BEGIN; LOCK TABLE item');
$waiter->send('BEGIN; LOCK TABLE item IN ACCESS SHARE MODE; COMMIT');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM tacho.blocking() WHERE object = 'relation public.item'})
  or die 'no lock is recorded';
$holder->run('COMMIT');
$_->finish foreach $holder, $waiter;
my $of_item = "FROM tacho.tables_history(since => '2000-01-01', n => null) WHERE key = 'public.item' AND tuples_returned = 5000";
$node->poll_query_until('postgres', "SELECT count(*) = 1 $of_item") or die 'nothing is recorded';
wait_until_in_history($node);
my $until = server_ms($node);
# a record belongs to the window with its middle: the last one may come after it
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.tables_history(since => @{[at($until)]}) WHERE key = '(other)'")
  or die 'no further record';
my %window = (since => utc($since - 5000), until => utc($until));

# The client of the page: an assistant's configuration has the program and its arguments.
my ($configuration) = map { decode_json($_->{text}) } grep { $_->{text} =~ /mcpServers/ } blocks($page);
my $of_page = $configuration->{mcpServers}{tacho};
is($of_page->{command}, 'tacho-mcp', 'the page names the program');
my @arguments = map { s{/backup/shop/tacho}{$tape}r } @{ $of_page->{args} };
isnt("@arguments", "@{ $of_page->{args} }", '... and a tape');
my $client = mcp(@arguments);
is($client->call('servers')->{servers}[0]{name}, 'shop', 'the client asks for servers');
my $text = slurp_file($page);
my ($table) = $text =~ /^## Tools\n\n(.*?)\n\n/ms;
my @tools = map { $_->{name} } @{ $client->ask('tools/list', {})->{tools} };
is_deeply([ sort $table =~ /^\| `(\w+)` /mg ], [ sort @tools ], 'the page has all tools');
my ($filters) = map { decode_json($_) } $text =~ /`(\{"application": [^`]*\})`/;
is_deeply($client->call('top', %window, dimension => 'query_id', filters => $filters)->{rows}, [], 'filters of the page are understood');

# The same by a connection.
my $connected = mcp('--dsn', $node->connstr('postgres'));
my $rows = $client->call('tables', %window, n => 'all')->{rows};
my ($item) = grep { $_->{key} eq 'public.item' } @$rows;
is("$item->{database} $item->{tuples_inserted} $item->{tuples_returned}", 'postgres 5000 5000', 'tables has what was done');
is_deeply($connected->call('tables', %window, n => 'all')->{rows}, $rows, 'tables through a connection has the same rows');
my @statements = ([ 'top', dimension => 'query_id', n => 'all' ], ['markers'], ['locks']);
foreach my $asked (@statements)
{
	my ($tool, %more) = @$asked;
	my ($one, $other) = map { $_->call($tool, %window, %more)->{rows} } $client, $connected;
	cmp_ok(scalar @$one, '>', 0, "$tool has rows");
	is_deeply($other, $one, "... the same through a connection");
}
$_->end foreach $client, $connected;

# Without texts.
my $name = sql("SELECT (SELECT oid FROM pg_database WHERE datname = 'postgres') || '/' || 'item'::regclass::oid");
foreach my $place ([ '--tape', "shop=$tape" ], [ '--dsn', $node->connstr('postgres') ])
{
	my $hiding = mcp(@$place, '--hide-texts');
	my $hidden = $hiding->call('tables', %window, n => 'all')->{rows};
	is_deeply([ map { $_->{tuples_inserted} } grep { $_->{key} eq $name } @$hidden ], [5000], "$place->[0]: a table has numbers");
	is_deeply([ grep { $_->{key} =~ /item/ } @$hidden ], [], '... and no name');
	my $top = $hiding->call('top', %window, dimension => 'query_id', n => 'all')->{rows};
	is_deeply([ grep { exists $_->{query_text} } @$top ], [], '... a query no text');
	my $locks = $hiding->call('locks', %window)->{rows};
	is_deeply([ map { $_->{object} } @$locks ], ["relation $name"], '... nor has a locked table a name');
	$hiding->end;
}
$node->stop;
done_testing();
