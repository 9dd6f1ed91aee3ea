# The TLS of tacho web, as openssl and curl see it: which protocols it speaks, which certificate it
# shows before and after a signal, and that open connections stay.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoRecord qw(wait_until);
use TachoTest qw(tacho_cluster tacho_session wait_until_recorded);
use TachoWeb qw($TOKEN openssl web web_program);
use Test::More;

web_program();
foreach my $name (qw(openssl curl)) { plan skip_all => "$name is not installed" unless grep { -x "$_/$name" } split /:/, $ENV{PATH} }
my $node = tacho_cluster('web_tls');
wait_until_recorded($node);
my $place = PostgreSQL::Test::Utils::tempdir();
# a second without any load has no event
my $sleeper = tacho_session($node);
$sleeper->send('SELECT pg_sleep(600)');

# A certificate for localhost that is its own authority, and its key.
sub make_pair
{
	my ($name, @key) = @_;

	my $said = openssl('req', '-x509', @key, '-nodes', '-days', 2, '-subj', "/CN=$name", '-addext', 'subjectAltName=DNS:localhost',
		'-keyout', "$place/$name.key", '-out', "$place/$name.crt");
	die $said unless -s "$place/$name.crt";
	return;
}

# Copies a certificate and a key into the files that tacho web reads.
sub use_files
{
	my ($certificate, $key) = @_;

	foreach my $from ([ $certificate, 'crt' ], [ $key, 'key' ])
	{
		my ($name, $kind) = @$from;
		unlink "$place/used.$kind";
		append_to_file("$place/used.$kind", slurp_file("$place/$name.$kind"));
	}
	chmod 0600, "$place/used.key" or die $!;
	return;
}

make_pair('first', '-newkey', 'rsa:2048');
make_pair('second', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1');
use_files('first', 'first');
my $web = web($place, '--tape', 'shop=' . $node->data_dir . '/tacho', '--tls-cert', "$place/used.crt", '--tls-key', "$place/used.key");
my ($port) = $web->{address} =~ /:(\d+)$/;
like($web->{out}, qr{^https://127\.0\.0\.1:$port/$}m, 'tacho web prints an address with https');

# Protocol and subject of the certificate of a new connection, or "refused".
sub shown
{
	my ($authority, @options) = @_;
	my $said = openssl('s_client', '-connect', $web->{address}, '-servername', 'localhost', '-verify_hostname', 'localhost',
		'-CAfile', "$place/$authority.crt", '-verify_return_error', @options);
	my ($protocol) = $said =~ /^New, (\S+), Cipher is (?!\(NONE\))/m;
	my ($subject) = $said =~ /^subject=\s*CN\s*=\s*(\w+)/m;

	return $protocol && $subject ? "$protocol $subject" : 'refused';
}

sub curl
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ 'curl', '-sS', '--max-time', 60, '-H', "Authorization: Bearer $TOKEN", @_ ], '<', \undef, '>', \$out, '2>', \$error);
	return ($? >> 8, $out);
}

is(shown('first'), 'TLSv1.3 first', 'TLS 1.3 is accepted');
is(shown('first', '-tls1_2'), 'TLSv1.2 first', 'TLS 1.2 is accepted');
is(shown('first', '-tls1_1', '-cipher', 'ALL:@SECLEVEL=0'), 'refused', 'TLS 1.1 is refused');
is(shown('second'), 'refused', 'a client that trusts another certificate gives up');
like(openssl('s_client', '-connect', $web->{address}, '-alpn', 'h2,http/1.1'), qr/^ALPN protocol: http\/1\.1$/m, 'HTTP 1.1 is agreed upon');

my ($code, $out) = curl('--cacert', "$place/first.crt", "https://localhost:$port/api/v1/servers");
is("$code " . decode_json($out)->{servers}[0]{name}, '0 shop', 'curl gets an answer');
($code) = curl('--cacert', "$place/second.crt", "https://localhost:$port/api/v1/servers");
is($code, 60, 'curl refuses a certificate that it does not trust');
($code, $out) = curl('-w', '%{http_code}', "http://localhost:$port/api/v1/servers");
like($out, qr/"message": "this port speaks TLS only".*"hint": "Begin the address with https:\/\/\.".*400$/s, 'a request without TLS gets one answer');

# A client of live events, whose connection lasts.
my $events = '';
my $live = IPC::Run::start([ 'curl', '-sSN', '--cacert', "$place/first.crt", '-H', "Authorization: Bearer $TOKEN",
	"https://localhost:$port/api/v1/live?server=shop" ], '<', \undef, '>', \$events, '2>&1');
my $ticks = sub { $live->pump_nb; return scalar(() = $events =~ /^event: tick$/mg) };
wait_until('live events', sub { $ticks->() > 1 });

# Sends the signal, and waits for a message.
sub reload
{
	my ($message) = @_;

	$web->{log} = '';
	$web->{harness}->signal('HUP');
	wait_until('a message', sub { $web->{harness}->pump_nb; $web->{log} =~ /$message/ });
	return $web->{log};
}

use_files('second', 'first');
like(reload('earlier certificate'), qr/^warning: could not use certificate file ".*\/used\.crt" with key file ".*\/used\.key": /,
	'the log has a key of another certificate');
is(shown('first'), 'TLSv1.3 first', 'the earlier pair is kept');
use_files('second', 'second');
is(reload('as it is now'), qq{log: new connections use certificate file "$place/used.crt" as it is now\n}, 'the log has the new pair');
is(shown('second'), 'TLSv1.3 second', 'clients get the new pair, an ECDSA key after one of RSA');
is(shown('first'), 'refused', 'clients no longer get the earlier pair');
my $before = $ticks->();
wait_until('more live events', sub { $ticks->() > $before + 1 });
ok($live->pumpable, 'an open connection goes on with the earlier pair');
$live->kill_kill;

chmod 0640, "$place/used.key" or die $!;
like(reload('earlier certificate'), qr/^warning: key file ".*" has group or world access\nhint: Run chmod go= FILE\.$/m, 'a key that a group may read is refused');
is(shown('second', '-tls1_2'), 'TLSv1.2 second', 'the pair is kept');
$web->end;
$node->stop('immediate');
done_testing();
