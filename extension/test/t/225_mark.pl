# Markers of users are written exactly once, by tacho mark and by HTTP, whatever happens
# to the writer in between.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoMetrics qw(start_web);
use TachoRecord qw(ask wait_until);
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster wait_for_marker);
use Test::More;

my $node = tacho_cluster('mark');
my $tape = $node->data_dir . '/tacho';
wait_until_written($node);

# Exit code and errors of tacho mark with a text.
sub mark
{
	my ($text, $dir) = @_;
	my ($out, $error) = ('', '');

	IPC::Run::run([ $ENV{TACHO_PROGRAM}, 'mark', '--tape', $dir // $tape, '--', $text ],
		'<', \undef, '>', \$out, '2>', \$error);
	return join ' ', $? >> 8, split /\n/, $out . $error;
}

sub texts
{
	return join ' | ', map { $_->{detail} }
	  sort { $a->{detail} cmp $b->{detail} }
	  grep { $_->{kind} eq 'mark' } ask($tape, 'markers', '--since', '2000-01-01');
}

sub files { return scalar(() = glob "$tape/marker-*") }

is(mark('deploy 1.4'), '0', 'a marker is written');
ok(wait_for_marker($node, 'mark', 1), 'tacho.markers() has the mark with the next tick');
is($node->safe_psql('postgres', q{
		SELECT detail, marker_time BETWEEN now() - interval '1 minute' AND now(), period_start, period_end
		FROM tacho.markers() WHERE kind = 'mark'}),
	'deploy 1.4|t||', 'the mark has its text and its time');
is(texts(), 'deploy 1.4', 'tacho markers has the mark');
wait_until('its file is gone', sub { files() == 0 });

# the writer is killed while markers wait, and when they are in its log
for my $n (1 .. 5)
{
	is(mark("kill $n"), '0', "a marker before the writer is killed, $n");
	wait_for_marker($node, 'mark', 1 + $n) if $n % 2;
	my $pid = metric($node, 'writer_pid');
	kill 'KILL', $pid;
	wait_for_metric($node, 'writer_pid', "value::int <> $pid");
	ok(wait_for_marker($node, 'mark', 1 + $n), 'each mark before a killed writer becomes a marker');
}
wait_until('all files are gone', sub { files() == 0 });
$node->restart;
wait_for_metric($node, 'ticks_taken', 'value::int >= 5');
wait_until_written($node);
is(texts(), 'deploy 1.4 | kill 1 | kill 2 | kill 3 | kill 4 | kill 5', 'each mark is there once');

my $hostile = "\xE2\x80\xAE<script>alert(1)</script>'; DROP TABLE t; \$(reboot) ../../x %s \\n";
is(mark($hostile), '0', 'a text with control characters is taken');
ok(wait_for_marker($node, 'mark', 7), 'a text with control characters becomes a marker');
is($node->safe_psql('postgres', q{SELECT encode(convert_to(detail, 'UTF8'), 'hex') FROM tacho.markers()
		WHERE kind = 'mark' ORDER BY marker_time DESC LIMIT 1}),
	unpack('H*', $hostile), 'the text is the same byte for byte');

my $long = 'x' x 1001;
for (
	[ ' ', 'the text of a marker is empty' ],
	[ $long, 'the text of a marker has more than 1000 bytes' ],
	[ "a\nb", 'the text of a marker has control characters' ],
	[ "\e[2J", 'the text of a marker has control characters' ])
{
	like(mark($_->[0]), qr/^[12] error: $_->[1]/, $_->[1]);
}
my $other = PostgreSQL::Test::Utils::tempdir();
like(mark('x', $other), qr/error: no recorder runs for directory "\Q$other\E" hint: Start the server or tacho record/,
	'a directory without a recorder takes no mark');
like(mark('x', "$other/none"), qr/error: no recorder runs for directory/, 'a directory that does not exist takes no mark');
SKIP:
{
	skip 'root may write anywhere', 1 if $> == 0;
	chmod 0500, $tape or die "chmod: $!";
	my $said = mark('x');
	chmod 0700, $tape or die "chmod: $!";
	like($said, qr/error: could not write a marker to directory .*: Permission denied.* hint: Run this as the user that runs the recorder/,
		'a directory without rights takes no mark');
}
ok(wait_until('nothing is left', sub { files() == 0 }), 'refused marks leave no file');

SKIP:
{
	skip 'there is no tacho-web', 2 unless -x dirname($ENV{TACHO_PROGRAM}) . '/tacho-web';
	my $web = start_web($tape, PostgreSQL::Test::Cluster::get_free_port());
	is($web->post('/api/v1/markers', { text => 'deploy 1.5', server => 'shop' })->{status}, 202,
		'a mark by HTTP is taken');
	ok(wait_for_marker($node, 'mark', 8), 'the mark by HTTP becomes a marker');
	$web->stop;
}
$node->stop;
like(mark('late'), qr/error: no recorder runs/, 'a server that is down takes no mark');

done_testing();
