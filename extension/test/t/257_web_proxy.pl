# tacho web behind a real nginx, with the configuration of docs/web.md: nginx asks for a password,
# tacho web takes the name of the user from nginx alone.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Cwd qw(abs_path);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoManual qw(blocks);
use TachoRecord qw(wait_until);
use TachoTest qw(tacho_cluster tacho_session wait_until_recorded);
use TachoWeb qw(openssl web web_program);
use Test::More;

web_program();
my $page = abs_path("$FindBin::RealBin/../../..") . '/docs/web.md';
plan skip_all => 'there is no docs directory' unless -e $page;
my %found = map { my $name = $_; $name => (grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin')[0] } qw(curl nginx openssl);
foreach my $name (sort keys %found) { plan skip_all => "$name is not installed" unless $found{$name} }
my $node = tacho_cluster('web_proxy');
wait_until_recorded($node);
my $place = PostgreSQL::Test::Utils::tempdir();
my $log = "$place/access.log";

# The command and the configuration of the page, with directories and ports of this test.
my ($command) = grep { $_->{language} eq 'sh' && $_->{text} =~ /--user-header/ } blocks($page);
my ($server) = grep { $_->{language} eq 'nginx' } blocks($page);
my (undef, undef, @options) = split ' ', $command->{text} =~ s{\bDIR\b}{shop=@{[$node->data_dir]}/tacho}r;
my $web = web($place, @options, '--access-log', $log);
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $configuration = $server->{text};
foreach my $change (
	[ qr/listen 443 ssl;/, "listen 127.0.0.1:$port ssl;" ],
	[ qr{/etc/ssl/tacho\.crt}, "$place/tacho.crt" ],
	[ qr{/etc/ssl/private/tacho\.key}, "$place/tacho.key" ],
	[ qr{/etc/nginx/tacho\.users}, "$place/users" ],
	[ qr{127\.0\.0\.1:8432}, $web->{address} ])
{
	my ($from, $to) = @$change;
	$configuration =~ s/$from/$to/ or die "docs/web.md has no $from";
}
openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', 2, '-subj', '/CN=tacho.example',
	'-addext', 'subjectAltName=DNS:tacho.example', '-keyout', "$place/tacho.key", '-out', "$place/tacho.crt");
append_to_file("$place/users", 'ann:' . openssl(qw(passwd -apr1 right)));
append_to_file("$place/nginx.conf", "daemon off;\npid $place/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	. join('', map { "${_}_temp_path $place/$_;\n" } qw(client_body proxy fastcgi uwsgi scgi)) . "$configuration}\n");
my $said = '';
my $nginx = IPC::Run::start([ $found{nginx}, '-e', 'stderr', '-p', $place, '-c', "$place/nginx.conf" ], '<', \undef, '>&', \$said);
END
{
	my $status = $?;
	$nginx->signal('TERM') if $nginx && $nginx->pumpable;
	$nginx->finish if $nginx;
	$? = $status;
}

# Status and body of an answer.
sub curl
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ $found{curl}, '-sS', '--max-time', 60, '-w', "\n%{http_code}", @_ ], '<', \undef, '>', \$out, '2>', \$error);
	return $out =~ /^(.*)\n(\d+)$/s ? ($2, $1) : ($error, '');
}

# The same through nginx.
sub through
{
	my ($path, @more) = @_;

	return curl('--cacert', "$place/tacho.crt", '--resolve', "tacho.example:$port:127.0.0.1", @more, "https://tacho.example:$port$path");
}

# User and status of the lines that the access log has more than before.
my $seen = 0;
sub logged
{
	my @lines = map { decode_json($_) } -e $log ? split(/\n/, slurp_file($log)) : ();
	my @new = splice @lines, $seen;

	$seen += @new;
	return join ', ', map { ($_->{user} // 'nobody') . " $_->{path} $_->{status}" } @new;
}

my $servers = '/api/v1/servers';
my @ann = ('-u', 'ann:right');
wait_until('nginx answers', sub { (through('/'))[0] =~ /^401$/ }) or diag($said);
logged();
is((through($servers))[0], 401, 'nginx asks for a password');
is((through($servers, '-u', 'ann:wrong'))[0], 401, 'nginx refuses a wrong password');
is((through($servers, '-H', 'X-Remote-User: ann'))[0], 401, 'a header does not replace a password');
is(logged(), '', 'refused requests do not reach tacho web');

my ($status, $body) = through($servers, @ann);
is("$status " . decode_json($body)->{servers}[0]{name}, '200 shop', 'a user gets an answer without a token');
is(logged(), "ann $servers 200", 'the access log names the user');
my ($line) = map { decode_json($_) } (split /\n/, slurp_file($log))[-1];
my ($shown) = map { decode_json($_->{text}) } grep { $_->{text} =~ /"peer"/ } blocks($page);
is_deeply([ sort keys %$line ], [ sort keys %$shown ], '... and has the members that docs/web.md shows');
foreach my $own ([ 'X-Remote-User: root' ], [ 'x-remote-user: root' ], [ 'X-Remote-User: root', 'X-Remote-User: bob' ], [ 'X_Remote_User: root' ], [ 'X-Remote-User;' ])
{
	($status) = through($servers, @ann, map { ('-H', $_) } @$own);
	is("$status, " . logged(), "200, ann $servers 200", "the client's own header has no effect: @$own");
}

# A program of another address than nginx asks directly.
my $direct = "http://$web->{address}$servers";
($status) = curl('--interface', '127.0.0.9', '-H', 'X-Remote-User: ann', '-H', 'X-Forwarded-For: 127.0.0.1', $direct);
is("$status, " . logged(), "401, nobody $servers 401", 'a header from another address names no user');
($status) = curl($direct);
is("$status, " . logged(), "401, nobody $servers 401", 'a request without the header needs a token, also from this host');

# The page through nginx: it writes markers, and live events come at once.
my @form = ('-d', 'server=shop', '-d', 'text=deploy');
($status) = through('/api/v1/markers', @ann, '-H', "Origin: https://tacho.example:$port", @form);
is("$status, " . logged(), '202, ann /api/v1/markers 202', 'the page may write a marker');
($status) = through('/api/v1/markers', @ann, '-H', 'Origin: https://other.example', @form);
is("$status, " . logged(), '403, ann /api/v1/markers 403', 'a page of another site may not write a marker');
my $sleeper = tacho_session($node);
$sleeper->send('SELECT pg_sleep(600)');    # a second without any load has no event
my $events = '';
my $live = IPC::Run::start([ $found{curl}, '-sSN', '--cacert', "$place/tacho.crt", '--resolve', "tacho.example:$port:127.0.0.1", @ann,
	"https://tacho.example:$port/api/v1/live?server=shop" ], '<', \undef, '>', \$events, '2>&1');
wait_until('live events', sub { $live->pump_nb; $events =~ /^event: tick$/m });
ok(1, 'live events come through nginx');
$live->kill_kill;
$web->end;
$node->stop('immediate');
done_testing();
