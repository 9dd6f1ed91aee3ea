# Statistics across shutdown, crash and damage of the saved file.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('save', conf => "tacho.statements_save_interval = 100ms\nrestart_after_crash = on\n");
my $data = $node->data_dir;
my $dump = "$data/pg_stat/tacho_statements.stat";
my $save = "$data/pg_stat_tmp/tacho_statements.stat";
my $all = q{select md5(string_agg((to_jsonb(s) - 'restored')::text, chr(10) order by queryid, toplevel)) from tacho.statements s where query ~ 'as known' and query !~ 'tacho'};
my $calls = q{select string_agg(query || ':' || calls, ', ' order by query collate "C") from tacho.statements where query ~ 'as known' and query !~ 'tacho'};

sub overwrite
{
	my ($path, $content) = @_;
	open my $file, '>:raw', $path or die "$path: $!";
	print $file $content;
	close $file or die;
}

# a clean restart loses nothing, not a bit
$node->safe_psql('postgres', 'select 1 as known; select 2 as known; select 1, 2 as known;');
$node->psql('postgres', 'select 1 / 0 as known');
my $before = $node->safe_psql('postgres', $all);
my $info = $node->safe_psql('postgres', 'select stats_reset from tacho.statements_info');
my $restored = q{select string_agg(query || ':' || restored, ', ' order by query collate "C") from tacho.statements where query ~ 'as (known|later)$' and query !~ 'tacho|/'};
is($node->safe_psql('postgres', $restored), 'select $1 as known:false, select $1, $2 as known:false', 'entries counted since the start are not marked as restored');
$node->stop;
ok(-e $dump, 'shutdown writes the dump');
ok(!-e $save, 'shutdown removes the periodic save');
my $content = slurp_file($dump);
$node->start;
is($node->safe_psql('postgres', $all), $before, 'a clean restart keeps every counter and text');
is($node->safe_psql('postgres', 'select stats_reset from tacho.statements_info'), $info, 'a clean restart keeps the time of the last reset');
ok(!-e $dump, 'the dump is removed when it is loaded');
is($node->safe_psql('postgres', 'select 3 as known; ' . $calls),
	"3\nselect \$1 / \$2 as known:0, select \$1 as known:3, select \$1, \$2 as known:1",
	'loaded entries go on counting');
is($node->safe_psql('postgres', 'select 1, 2, 3 as later; ' . $restored),
	"1|2|3\nselect \$1 as known:true, select \$1, \$2 as known:true, select \$1, \$2, \$3 as later:false",
	'restored entries are marked, later ones are not');

# a crash loses at most the counts since the last save
my $saved = $node->safe_psql('postgres', $calls);
# waits for two saves: the second one began after this, so it is complete
for (1 .. 2)
{
	my $inode = (stat $save)[1] // 0;
	$node->safe_psql('postgres', 'select now()');
	for (1 .. 1800)
	{
		last if ((stat $save)[1] // 0) != $inode;
		select undef, undef, undef, 0.1;
	}
}
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $calls), $saved, 'after a crash of the server the last save is loaded');
# a backend dies: shared memory is made again without a restart
my $pid = $node->safe_psql('postgres', 'select pid from pg_stat_activity where backend_type = \'checkpointer\'');
kill 'KILL', $pid;
$node->poll_query_until('postgres', "select count(*) = 1 from pg_stat_activity where backend_type = 'checkpointer' and pid <> $pid");
is($node->safe_psql('postgres', $calls), $saved, 'after a crash of a process the last save is loaded');
is($node->safe_psql('postgres', $restored), 'select $1 as known:true, select $1, $2 as known:true, select $1, $2, $3 as later:true',
	'entries of that save are marked as restored');

# a terminated saver is started again; not every major shows it as a session
sub savers
{
	my ($postmaster) = split /\n/, slurp_file("$data/postmaster.pid");
	return grep { eval { slurp_file("/proc/$_/stat") =~ /\) \S $postmaster /
			  && slurp_file("/proc/$_/cmdline") =~ /tacho saver/ } }
	  map { m{/proc/(\d+)$} } glob '/proc/[0-9]*';
}

# Waits for a saver other than `but`.
sub saver
{
	my ($but) = @_;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my @others = grep { $_ != $but } savers();
		return $others[0] if @others == 1;
		select undef, undef, undef, 0.1;
	}
	return 0;
}
my $first = saver(0);
kill 'TERM', $first;
isnt(saver($first), 0, 'a terminated saver is started again');

# under pg_upgrade nothing is counted, loaded or saved
$node->stop;
my $kept = slurp_file($dump);
command_ok(['pg_ctl', '-D', $data, '-l', $node->logfile, '-o', '-b', '-w', 'start'], 'a server starts as pg_upgrade starts it');
is(scalar(savers()), 0, 'under pg_upgrade there is no saver process');
is($node->safe_psql('postgres', q{select count(*) from pg_shmem_allocations where name like 'tacho%'}), 0, 'under pg_upgrade shared memory has nothing of tacho');
command_ok(['pg_ctl', '-D', $data, '-w', 'stop'], 'the server of pg_upgrade stops');
ok(slurp_file($dump) eq $kept, 'pg_upgrade leaves the dump as it was');
$node->start;
is($node->safe_psql('postgres', $calls), $saved, 'the start after pg_upgrade loads the dump');

# a shutdown that cannot write its dump keeps the last save
mkdir "$dump.new" or die;
my $end = -s $node->logfile;
$node->stop;
rmdir "$dump.new" or die;
like(slurp_file($node->logfile, $end), qr{could not write file "pg_stat/tacho_statements.stat": Is a directory}, 'the log says that a dump cannot be written');
$node->start;
is($node->safe_psql('postgres', $calls), $saved, 'the next start loads the last save instead');

# files that cannot be used are set aside
sub restart_with
{
	my ($bytes, $pattern, $name) = @_;
	$node->stop;
	unlink $save;
	overwrite($dump, $bytes);
	my $offset = -s $node->logfile;
	$node->start;
	is($node->safe_psql('postgres', $calls), '', "$name: the dump is not loaded");
	like(slurp_file($node->logfile, $offset), $pattern, "$name: the log warns with the reason");
	ok(-e "$dump.rejected" && !-e $dump, "$name: the dump is set aside");
	unlink "$dump.rejected";
}
restart_with(substr($content, 0, length($content) - 7), qr/checksum is wrong/, 'torn');
restart_with('', qr/too short/, 'empty');
my $flipped = $content;
substr($flipped, 200, 1) = chr(ord(substr($flipped, 200, 1)) ^ 4);
restart_with($flipped, qr/checksum is wrong/, 'flipped bit');
restart_with('x' x 5000, qr/another format/, 'something else');

# a reboot gives the device of the data directory another number
sub crc32c
{
	my ($crc) = (0xFFFFFFFF);
	my @table = map { my $c = $_; $c = $c & 1 ? ($c >> 1) ^ 0x82F63B78 : $c >> 1 for 1 .. 8; $c } 0 .. 255;
	$crc = ($crc >> 8) ^ $table[($crc ^ $_) & 0xFF] for unpack 'C*', shift;
	return $crc ^ 0xFFFFFFFF;
}
$node->safe_psql('postgres', 'select 1 as known');
$saved = $node->safe_psql('postgres', $calls);
$node->stop;
my $moved = substr(slurp_file($dump), 0, -4);
is(unpack('Q', substr($moved, 24, 8)), (stat $data)[0], 'a dump names its device');
substr($moved, 24, 8) = pack('Q', (stat $data)[0] + 1);
overwrite($dump, $moved . pack('L', crc32c($moved)));
$node->start;
is($node->safe_psql('postgres', $calls), $saved, 'a dump from before a reboot is loaded');

# a dump of another data directory
$node->safe_psql('postgres', 'select 1 as known');
$node->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
# no copy of the tests' template, which has the same system identifier
$copy->init(extra => ['-k']);
$copy->append_conf('postgresql.conf', "shared_preload_libraries = 'tacho'\ntacho.program = '/nonexistent'\n");
overwrite($copy->data_dir . '/pg_stat/tacho_statements.stat', slurp_file($dump));
$copy->start;
$copy->safe_psql('postgres', 'create extension tacho');
is($copy->safe_psql('postgres', $calls), '', 'a dump of another cluster is not loaded');
like(slurp_file($copy->logfile), qr/belongs to another database cluster/, 'the log names the other cluster');
$copy->stop;
system("cp -R '$data' '$data.copied'") == 0 or die;
rename $data, "$data.original" or die;
rename "$data.copied", $data or die;
my $offset = -s $node->logfile;
$node->start;
is($node->safe_psql('postgres', $calls), '', 'a dump in a copied directory is not loaded');
like(slurp_file($node->logfile, $offset), qr/copied from another data directory/, 'the log names the other directory');

# with statements_save = off nothing is saved, and no file is kept for later
$node->safe_psql('postgres', 'select 1 as known');
for (1 .. 1800)
{
	last if -e $save && slurp_file($save) =~ /as known/;
	select undef, undef, undef, 0.1;
}
$node->append_conf('postgresql.conf', 'tacho.statements_save = off');
$node->reload;
# a new session has the settings of the postmaster
$node->poll_query_until('postgres', "select current_setting('tacho.statements_save') = 'off'");
$node->stop;
ok(!-e $dump, 'statements_save = off writes no dump');
$node->start;
is($node->safe_psql('postgres', $calls), '', 'the next start has nothing to load');
$node->append_conf('postgresql.conf', 'tacho.statements_save = on');
$node->restart;
is($node->safe_psql('postgres', $calls), '', 'a later start with saves on has nothing to load');

# no memory for statements at all
$node->append_conf('postgresql.conf', 'tacho.statements = off');
$node->restart;
is($node->safe_psql('postgres', q{select count(*) from pg_shmem_allocations where name like 'tacho statements%'}),
	0, 'no memory is reserved with tacho.statements = off');
my ($code, $out, $err) = $node->psql('postgres', 'select * from tacho.statements');
like($err, qr/tacho must be loaded via "shared_preload_libraries"/, 'the view says that statistics are off');
is($node->safe_psql('postgres', 'select 1 as known'), 1, 'statements run with statistics off');
ok(!-e $dump && !-e $save, 'the older dump is removed');
$node->stop;
done_testing();
