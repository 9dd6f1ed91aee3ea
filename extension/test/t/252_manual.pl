# Every command of the manual is run, or its block says why not. The reference of commands and
# metrics is the help and the metrics of the programs.
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use Encode;
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoManual qw(blocks run_page);
use TachoTest qw(tacho_cluster tacho_session wait_until_in_history wait_until_recorded);
use Test::More;

my $root = abs_path("$FindBin::RealBin/../../..");
my $bin = dirname($ENV{TACHO_PROGRAM});
plan skip_all => 'there is no docs directory' unless -d "$root/docs";
foreach my $name (qw(doctor live mcp record ship watch web)) { plan skip_all => "there is no tacho-$name" unless -x "$bin/tacho-$name" }
my $share = `$ENV{PG_CONFIG} --sharedir`;
chomp $share;
plan skip_all => 'there is no pg_stat_statements' unless -e "$share/extension/pg_stat_statements.control";
delete @ENV{qw(PGDATA TACHO_TAPE PGAPPNAME PGOPTIONS TZ)};

# A server with the names that the pages use, on a port of TCP: the pages connect to hosts.
my $node = PostgreSQL::Test::Cluster->new('shop', own_host => 1);
$node->init;
$node->append_conf('postgresql.conf', <<"END");
listen_addresses = '127.0.0.1'
shared_preload_libraries = 'tacho'
tacho.program = '$ENV{TACHO_PROGRAM}'
tacho.sample_interval = 100ms
tacho.flush_interval = 1s
tacho.statements_interval = 1s
tacho.server_interval = 1s
END
unlink $node->data_dir . '/pg_hba.conf';
$node->append_conf('pg_hba.conf', "local all all trust\nhost all all 127.0.0.1/32 trust\n");
$node->start;
my $user = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', $_) foreach 'CREATE EXTENSION tacho', 'CREATE ROLE watcher LOGIN', 'GRANT pg_monitor TO watcher',
	'CREATE DATABASE app', 'CREATE DATABASE shop', 'CREATE DATABASE mydb';
$node->safe_psql($_, 'CREATE EXTENSION tacho') foreach qw(app shop);
my ($since) = $node->safe_psql('postgres', q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});
$node->safe_psql('postgres', 'SELECT pg_sleep(2)', connstr => $node->connstr('postgres') . " application_name='$_'")
	foreach 'customer page', 'export', 'stock import';
wait_until_recorded($node);
my ($until) = $node->safe_psql('postgres', q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});

# Where commands run: directories of the pages below $place, programs in front of the others.
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $place = PostgreSQL::Test::Utils::tempdir_short();
make_path(map { "$place/$_" } qw(bin home cwd backup/main var/lib/tacho var/lib/prometheus/node-exporter));
my $tape = $node->data_dir . '/tacho';
symlink "$root/sql", "$place/cwd/sql" or die $!;
symlink $tape, "$place/cwd/DIR" or die $!;
symlink $tape, "$place/backup/main/tacho" or die $!;
my ($rules) = grep { $_->{language} eq 'toml' } blocks("$root/docs/watch.md");
append_to_file("$place/cwd/watch.toml", $rules->{text});
append_to_file("$place/services", join '', map { "[$_]\nhost=127.0.0.1\ndbname=app\nuser=watcher\n" } qw(shop stock));

sub program
{
	my ($name, $text) = @_;

	append_to_file("$place/bin/$name", "#!/usr/bin/env bash\nset -euo pipefail\n$text");
	chmod 0755, "$place/bin/$name" or die $!;
	return;
}

# "tacho web" and "tacho record" go on: they end here when the first has printed its address, the
# other has written a history. "tacho live" has a terminal, where somebody presses Q. "tacho mcp" has
# a client that says hello and leaves.
program('tacho', <<"END");
real=$ENV{TACHO_PROGRAM}
until_ready() { # COMMAND...: waits for \$ready, then ends the program, which must end well
	"\$real" "\$@" >"\$log" 2>&1 &
	for ((n = 0; n < 600; n++)); do
		if eval "\$ready"; then kill -TERM \$!; wait \$! || { cat "\$log"; exit 1; }; cat "\$log"; return; fi
		kill -0 \$! 2>/dev/null || { cat "\$log"; exit 1; }
		sleep 0.1
	done
	cat "\$log"; kill \$!; exit 1
}
log=\$(mktemp)
case "\${1:-} \$*" in
web\\ *) ready='grep -q "^http://" "\$log"'; set -- "\$@" --listen 127.0.0.1:0; until_ready "\$@" ;;
record\\ *--check*) exec "\$real" "\$@" ;;
record\\ *) ready='compgen -G "\${!#}/*.open" >/dev/null'; until_ready "\$@" ;;
mcp\\ *) "\$real" "\$@" <<'HELLO' ;;
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
HELLO
live\\ *) exec script -qec "\$(printf '%q ' "\$real" "\$@")" /dev/null <<<Q ;;
*) exec "\$real" "\$@" ;;
esac
END
program('sudo', qq{[ "\$1" != -u ] || shift 2\nexec "\$@"\n});

# Paths of the pages become paths below $place.
sub substitute
{
	my ($command) = @_;
	my $data = $node->data_dir;

	$command =~ s{/var/lib/postgresql/15/main\b}{$data}g;
	$command =~ s{(?<![\w./])/(backup/main|var/lib/tacho|var/lib/prometheus)\b}{$place/$1}g;
	$command =~ s{/usr/lib/postgresql/15/bin\b}{$place/bin:@{[$node->config_data('--bindir')]}}g;
	$command =~ s/\b5440\b/$port/g;
	return $command;
}

my %environment = (
	PATH => "$place/bin:$ENV{PATH}", HOME => "$place/home", TMPDIR => $place, TERM => 'xterm', LC_ALL => 'C.UTF-8', TZ => 'UTC',
	TACHO_TAPE => $tape, PGSERVICEFILE => "$place/services",
	PGHOSTADDR => '127.0.0.1', PGHOST => '127.0.0.1', PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => $user,
	calm => $since, since => $since, until => $until);
my @psql = ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', map { ('-v', "$_=$environment{$_}") } qw(calm since until));

# Objects that a page makes itself are not there before.
sub before
{
	my ($text) = @_;

	$node->safe_psql('postgres', 'DROP EXTENSION IF EXISTS tacho') if $text =~ /^CREATE EXTENSION tacho;/m;
	$node->safe_psql('postgres', 'DROP ROLE IF EXISTS watcher') if $text =~ /^CREATE ROLE watcher /m;
	return;
}

my $commands = 0;
my @pages = (qw(README.md sql/README.md conformance/README.md), map { substr $_, length("$root/") }
	map { sort glob "$root/docs/$_" } qw(*.md guide/*.md bench/*.md reference/*.md reference/functions/*.md));
foreach my $page (grep { $_ ne 'docs/tutorial.md' } @pages)
{
	$commands += run_page("$root/$page", $page, directory => "$place/cwd", environment => \%environment,
		psql => \@psql, substitute => \&substitute, before => \&before);
}

# The table of questions: each command and each function is run.
my ($table) = Encode::decode('UTF-8', slurp_file("$root/docs/ask.md")) =~ /^## Questions by task\n(.*?)^## /ms;
foreach my $row (grep { /^\| [A-Z].*\?/ } split /\n/, $table)
{
	my (undef, undef, $command, $sql) = split / *\| */, $row;
	($command, $sql) = map { /^`([^`]+)`/ ? $1 : die $row } $command, $sql;
	$command =~ s/\bN\b/1/;
	$sql =~ s/'N'/'1'/;
	command_ok([ 'env', (map { "$_=$environment{$_}" } qw(TACHO_TAPE TZ)), $ENV{TACHO_PROGRAM}, map { s/'//gr } split / /, $command ], "tacho $command");
	is(($node->psql('postgres', "SELECT * FROM $sql"))[0], 0, $sql);
	$commands += 2;
}

# The reference of metrics: each metric of this server has a row with its type and help.
my ($metrics) = run_command([ $ENV{TACHO_PROGRAM}, 'metrics', '--tape', $tape ]);
my $reference = Encode::decode('UTF-8', slurp_file("$root/docs/reference/metrics.md"));
my @lacking = grep { my ($name, $help, $type) = @$_; $reference !~ /^\| `$name` \| $type \| (?:`[^|]* \| )?\Q$help\E \|$/mi }
	map { [ $_, $metrics =~ /^# HELP $_ (.*?)\.?\n# TYPE $_ (\w+)$/m ] } $metrics =~ /^# TYPE (\w+)/mg;
is(Encode::encode('UTF-8', join "\n", map { join ' ', map { $_ // '-' } @$_ } @lacking), '', 'docs/reference/metrics.md names the metrics');
$node->stop;

# The tutorial has a server of its own, and its commands share variables.
my %tutorial = %environment;
delete @tutorial{qw(TACHO_TAPE PGSERVICEFILE PGHOSTADDR PGHOST PGPORT PGDATABASE PGUSER)};
my ($first) = grep { $_->{text} =~ /^export PGDATA/m } blocks("$root/docs/tutorial.md");
my $exports = join "\n", grep { /^export / } split /\n/, substitute($first->{text});
append_to_file("$place/exports", $exports);
$tutorial{BASH_ENV} = "$place/exports";
$commands += run_page("$root/docs/tutorial.md", 'docs/tutorial.md', directory => "$place/home", environment => \%tutorial,
	psql => [ 'false' ], substitute => \&substitute);
ok(!-e "$place/home/tacho-tutorial", 'the tutorial leaves nothing behind');
cmp_ok($commands, '>=', 90, 'commands of the manual were run');

# The reference that is made of the programs.
my ($out, $error) = ('', '');
IPC::Run::run([ "$root/tools/make-reference.pl", '--programs', $bin, '--check' ], '>', \$out, '2>', \$error);
is("$out$error", '', 'docs/reference/commands is the help of the programs');

done_testing();
