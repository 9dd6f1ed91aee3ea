# tacho doctor, from a stock server to one that records: each step runs the command that
# the step before has printed. Exit codes: 0 nothing is missing, 1 something is, 2
# broken.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoRecord qw(wait_until);

my $program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-doctor';
plan skip_all => "there is no $program" unless -x $program;
my $node = PostgreSQL::Test::Cluster->new('doctor');
$node->init;
$node->append_conf('postgresql.conf', "tacho.sample_interval = 100\ntacho.program = '$ENV{TACHO_PROGRAM}'");
my $data = abs_path($node->data_dir);
# a library that is preloaded before tacho: pg_stat_statements if installed, else plpgsql
my ($other) = grep { -e $node->config_data('--pkglibdir') . "/$_.so" } qw(pg_stat_statements plpgsql);
my $conninfo = $node->connstr('postgres');

# Runs the program: exit code, output, errors.
sub doctor
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ $program, @_ ], '<', \undef, '>', \$out, '2>', \$error);
	return ($? >> 8, $out, $error);
}

# The line of one thing, with the step below it, and the exit code.
sub line
{
	my ($what, @arguments) = @_;
	my ($code, $out) = doctor(@arguments);

	return (($out =~ /^(\w+ +\Q$what\E: .*\n(?: +.*\n)?)/m)[0] // $out, $code);
}

my ($line, $code) = line('server', $data);
like($line, qr/^no   server: not running\n +run: \S+ start -D \Q$data\E$/, 'a server that does not run is examined by its files');
is($code, 1, 'the doctor says that something is missing');
# The last start names the directory of the programs.
my $bin = $node->config_data('--bindir');
append_to_file("$data/postmaster.opts", "$bin/postgres\n");
($line) = line('preload', $data);
is($line, "no   preload: shared_preload_libraries is ''\n"
	  . "      write into $data/postgresql.conf: shared_preload_libraries = 'tacho'\n", 'the doctor names the file to change');

# Programs in a directory whose name has the word restart; their library is missing.
my $bare = $node->basedir . '/restart/bin';
run_command([ 'mkdir', '-p', $bare ]);
append_to_file("$bare/postgres", qq{#!/bin/sh\nexec '$bin/postgres' "\$@"\n});
chmod 0755, "$bare/postgres" or die $!;
unlink "$data/postmaster.opts" or die $!;
append_to_file("$data/postmaster.opts", "$bare/postgres\n");
is((line('preload', $data))[0], "no   preload: shared_preload_libraries is ''\n"
	  . "      install the package first: a server that preloads a missing library does not start\n",
	'the doctor does not advise to preload a missing library');
is((line('server', $data))[0], "no   server: not running\n      run: $bare/pg_ctl start -D $data\n", 'the command that starts the server has its path');
unlink "$data/postmaster.opts" or die $!;

$node->append_conf('postgresql.conf', qq{shared_preload_libraries = '$other'});
$node->start;
($line, $code) = line('extension', $conninfo);
my $alter = qq{ALTER SYSTEM SET shared_preload_libraries = '$other', 'tacho';};
is($line, "no   extension: installed on the host, not loaded\n"
	  . "      run: $alter and restart the server; then run: CREATE EXTENSION tacho; "
	  . "Or, without a restart: tacho record \"CONNINFO\" --tape DIR\n",
	'on a stock server tacho is appended to the preloaded libraries');
my $busy = IPC::Run::start([ 'psql', '-Xq', '-d', $conninfo, '-c', 'SELECT pg_sleep(3600)' ], '>', \my $slept, '2>', \my $ended);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
like((line('cost', $conninfo))[0], qr/; 1\.4 MB to 1\.9 MB of history per day with 1 sessions active, as now, /,
	'the doctor estimates the cost under the present load');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
$busy->finish;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE ROLE guest LOGIN');
is((line('who sees texts', $conninfo))[0], "yes  who sees texts: superusers, watcher; other roles see only their own\n",
	'the doctor names the roles that would see texts');
like((doctor($conninfo))[1], qr/^yes  blockers: who blocks whom$/m, 'the doctor says how much tacho record sees there');
($line) = line('preload', $data);
like($line, qr/^no   preload: shared_preload_libraries is '$other'\n +run: \Q$alter\E then: \S+ restart -D \Q$data\E$/,
	'the files alone give the same advice');

$node->safe_psql('postgres', $alter);
$node->reload;
($line, $code) = line('preload', $data);
is($line, "yes  preload: shared_preload_libraries = '$other, tacho'\n", 'the doctor sees that the files have changed');
$node->poll_query_until('postgres', q{SELECT pending_restart FROM pg_settings WHERE name = 'shared_preload_libraries'});
my $then = '; then run: CREATE EXTENSION tacho; Or, without a restart: tacho record "CONNINFO" --tape DIR';
is((line('extension', $conninfo))[0], "no   extension: installed on the host, not loaded\n      restart the server$then\n",
	'a pending list that names tacho stays');
is((line('extension', "$conninfo user=watcher"))[0], "no   extension: installed on the host, not loaded\n"
	  . "      the configuration files have another shared_preload_libraries already: append tacho to it if it is not there, and restart the server$then\n",
	'a pending list that the role may not see is not overwritten');
$node->safe_psql('postgres', "ALTER SYSTEM SET shared_preload_libraries = 'auto_explain'");
$node->reload;
my $both = q{run: ALTER SYSTEM SET shared_preload_libraries = 'auto_explain', 'tacho'; and restart the server};
is((line('extension', $conninfo))[0], "no   extension: installed on the host, not loaded\n      $both$then\n", 'tacho is appended to a pending list');
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
is((line('extension', $conninfo))[0], "no   extension: not loaded: shared_preload_libraries has changed, and does not contain tacho\n      $both\n",
	'a restart alone is not enough');
$node->safe_psql('postgres', $alter);
$node->reload;
($line, $code) = line('extension', $conninfo);
is($line, "no   extension: not loaded: shared_preload_libraries has changed, and the server was not restarted\n"
	  . "      restart the server\n", 'the doctor says that the server must restart');

$node->restart;
$node->safe_psql('postgres', 'CREATE DATABASE other');
($line, $code) = line('extension', $node->connstr('other'));
is($line, "no   extension: preloaded and recording, but not in database other\n      run: CREATE EXTENSION tacho;\n",
	'the doctor finds a database without the extension');
wait_until('samples', sub { (line('recording', $conninfo))[0] =~ /^yes  recording: on, the last sample \d+ s ago$/ });
($line, $code) = line('extension', $conninfo);
is($line, "yes  extension: preloaded, and in database postgres\n", 'the doctor finds everything there');
is($code, 0, 'the doctor finds nothing missing') or diag((doctor($conninfo))[1]);
is((line('statements', $conninfo))[0], $other eq 'plpgsql' ? "yes  statements: counted in tacho.statements\n" :
	  "part statements: counted twice: by tacho and by pg_stat_statements\n"
	  . "      replace it by tacho: tacho.pg_stat_statements = on, see docs/drop-in.md\n", 'the doctor finds two libraries that count');
my ($out) = (doctor($data))[1];
like($out, qr/^yes  data directory: .*\nyes  library: installed\nyes  program: .*\nyes  preload: .*\nyes  server: /m,
	'the doctor shows files first, then the connection');
my $host = `uname -n`;
chomp $host;
my $desk = -x dirname($program) . '/tacho-web' ?
  "yes  page: run: tacho web; from another machine: ssh -L 8432:127.0.0.1:8432 $host, then open the address that tacho web prints\n" :
  "part page: tacho-web is not installed here\n      on a machine that has it: tacho web --dsn \"host=$host port="
  . $node->port . " dbname=postgres user=USER\"\n";
is((line('page', $data))[0], $desk, 'the doctor says how to see the page');
my ($report) = @{ decode_json((doctor('--json', $data))[1]) };
my ($recording) = grep { $_->{name} eq 'recording' } @{ $report->{findings} };
is($report->{subject}, "cluster $data", 'the JSON names the subject');
is($recording->{state}, 'works', 'the JSON has states');

$node->safe_psql('postgres', 'CREATE ROLE visitor LOGIN');
($line, $code) = line('status', "$conninfo user=visitor");
is($line, "no   status: permission denied for role visitor\n      run: GRANT pg_read_all_stats TO visitor;\n", 'the doctor examines as a role without rights');
is($code, 1, 'the exit code says that a right is missing');

my $tape = "$data/tacho";
like((line('samples', $tape))[0], qr/^yes  samples: the last one \d+ s ago$/, 'the doctor examines a directory of history alone');
($code, $out) = doctor($node->basedir);
is($code, 2, 'a directory without history is broken');
like($out, qr/^FAIL history: directory ".*" has no history\n +Specify the directory of the history files/m, 'the doctor says which directory is meant');
my $error;
($code, $out, $error) = doctor('/nope');
is($code, 2, 'a directory that does not exist is broken');
like($error, qr{^error: directory "/nope" does not exist\nhint: Specify a data directory}, 'the doctor says which directory to name');
($code, $out) = doctor('host=/nope port=1');
is($code, 2, 'a server that cannot be reached is broken');
like($out, qr/^FAIL connection: could not connect: /m, 'the doctor says why it cannot be reached');

# A lake: an hour that has just ended, and one that is missing.
my $lake = $node->basedir . '/lake';
foreach my $hour (1, 3)
{
	my @then = gmtime(time - 3600 * $hour);
	my $day = sprintf '%s/servers/server=shop/day=%04d-%02d-%02d', $lake, $then[5] + 1900, $then[4] + 1, $then[3];
	run_command([ 'mkdir', '-p', $day ]);
	append_to_file(sprintf('%s/%02d-00000000000000ab-00003601.parquet', $day, $then[2]), '');
}
($line, $code) = line('server', $lake);
like($line, qr/^part server: shop: 2 hours, the newest \S+ \d\d:00\+00 ended \d+ \w+ ago; 1 before it are missing\n +tacho ship lists/,
	'the doctor examines a lake');
is($code, 0, 'the doctor finds hours that arrive');
($code, $out, $error) = doctor('s3://lake/landing');
is($code, 2, 'a lake in a bucket is refused');
like($error, qr{^hint: Run tacho fleet servers --lake "s3://lake/landing"}m, 'the message names the other program');

run_command([ 'psql', '-Xq', '-d', $node->connstr('other'), '-f', "$FindBin::RealBin/../../../sql/tacho.sql" ]);
($line, $code) = line('recording', $node->connstr('other'));
is($line, "FAIL recording: off: call tacho.start()\n"
	  . "      run: SELECT * FROM tacho.start(); its result names what can call the sampler here\n", 'the doctor finds an SQL edition that was not started');
is($code, 2, 'an SQL edition that was not started is broken');

# Loaded and silent is not the same as absent.
$node->append_conf('postgresql.conf', "tacho.program = '/nope'");
$node->restart;
wait_until('silence', sub { (line('recording', $conninfo))[1] == 2 });
like((line('recording', $conninfo))[0], qr/^FAIL recording: off: could not run "\/nope": .*\n +install the tacho program there, or set tacho\.program and restart/m, 'a loaded library that is silent is broken');
is((line('program', $data))[0] =~ s/\n.*//sr, 'no   program: /nope cannot be run', 'the files say why the library is silent');

# Clusters by the names that Debian's tools give them.
my $major = $node->pg_version->major;
my $root = $node->basedir . '/etc';
SKIP:
{
	skip 'no Debian programs', 4 unless -x "/usr/lib/postgresql/$major/bin/postgres";
	mkdir $_ or die "$_: $!" foreach $root, "$root/$major", "$root/$major/shop";
	append_to_file("$root/$major/shop/postgresql.conf", "data_directory = '$data'\n");
	local $ENV{PG_CLUSTER_CONF_ROOT} = $root;
	($code, $out) = doctor('--cluster', "$major/shop");
	like($out, qr{^cluster $major/shop\nyes  data directory: PostgreSQL $major, \Q$data\E$}m, 'the doctor finds a cluster by its name');
	# free disk and the age of the last tick change from one run to the next
	my ($first, $second) = map { s/\d+(\.\d+)?/N/gr } $out, (doctor("$major/shop"))[1];
	is($second, $first, 'the name works without the option');
	($code, $out, $error) = doctor('--cluster', '9/none');
	is($code, 2, 'a cluster of an unknown name is an error');
	like($error, qr{^error: cluster "9/none" does not exist\nhint: There are: cluster $major/shop\.$}m, 'the message lists the clusters');
}
done_testing();
