# tacho-record connects as psql does: TLS with a certificate of a private authority,
# SCRAM with channel binding, password and service files. A failure is reported, and
# recording continues when its cause is gone.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoRecord qw(markers moment record record_program run_record ticks wait_for_gap wait_until);

record_program(texts => 0);
plan skip_all => 'openssl is not installed' if !grep { -x "$_/openssl" } split /:/, $ENV{PATH};
my $node = PostgreSQL::Test::Cluster->new('tls');
plan skip_all => 'this server has no TLS' if $node->config_data('--configure') !~ /--with-(openssl|ssl)/;
my $dir = $node->basedir;

sub openssl
{
	my ($out, $error);

	IPC::Run::run([ 'openssl', @_ ], '>', \$out, '2>', \$error) or die "openssl: $error";
	return;
}

# OpenSSL 3.4 and later accept a past day, earlier versions a negative number of days.
my ($help, $help_error) = run_command([ 'openssl', 'x509', '-help' ]);
my @over = "$help$help_error" =~ /-not_after/
  ? ('-not_before', '20200101000000Z', '-not_after', '20200102000000Z') : ('-days', -1);

# A key and a certificate that an authority signed, good for a time.
sub certificate
{
	my ($name, $authority, @time) = @_;

	openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=db.test',
		'-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
	openssl('x509', '-req', '-in', "$dir/$name.csr", '-CA', "$dir/$authority.crt", '-CAkey', "$dir/$authority.key",
		'-CAcreateserial', @time, '-extfile', "$dir/names", '-out', "$dir/$name.crt");
	chmod 0600, "$dir/$name.key";
	return;
}

append_to_file("$dir/names", "subjectAltName=DNS:db.test\n");
openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', "/CN=$_",
	'-keyout', "$dir/$_.key", '-out', "$dir/$_.crt", '-days', 2) foreach qw(ours theirs);
certificate('good', 'ours', '-days', 2);
certificate('expired', 'ours', @over);

$node->init;
$node->append_conf('postgresql.conf', qq{
listen_addresses = '127.0.0.1'
password_encryption = 'scram-sha-256'
ssl = on
ssl_cert_file = '$dir/good.crt'
ssl_key_file = '$dir/good.key'
});
unlink $node->data_dir . '/pg_hba.conf';
append_to_file($node->data_dir . '/pg_hba.conf',
	"local all all trust\nhostssl all watcher 127.0.0.1/32 scram-sha-256\n");
$node->start;
$node->safe_psql('postgres', q{CREATE ROLE watcher LOGIN PASSWORD 'right'; GRANT pg_monitor TO watcher});

my $port = $node->port;
sub write_secret
{
	my ($name, $text) = @_;

	unlink "$dir/$name";
	append_to_file("$dir/$name", $text);
	chmod 0600, "$dir/$name";
	return;
}
write_secret('passwords', "*:$port:*:watcher:right\n");
write_secret('wrong', "*:$port:*:watcher:wrong\n");
write_secret('services', qq{[ours]
host=db.test
hostaddr=127.0.0.1
port=$port
dbname=postgres
user=watcher
sslmode=verify-full
sslrootcert=$dir/ours.crt
channel_binding=require
passfile=$dir/passwords
});
$ENV{PGSERVICEFILE} = "$dir/services";

# Exit code and messages of one way to connect.
sub check
{
	my ($conninfo) = @_;
	my ($code, $out, $error) = run_record('--check', $conninfo);

	return "$code $out$error";
}

like(check('service=ours'), qr/^3 yes  server: PostgreSQL /, 'a service with verify-full, channel binding and a password file connects');
like(check('service=ours host=other.test'),
	qr/^1 error: could not connect\ndetail: .*server certificate for "db\.test" does not match host name "other\.test"/s,
	'a certificate of another host is refused');
like(check("service=ours sslrootcert=$dir/theirs.crt"), qr/^1 error: could not connect\ndetail: .*certificate verify failed/s,
	'a certificate of another authority is refused');
like(check("service=ours passfile=$dir/wrong"), qr/^1 error: .*password authentication failed for user "watcher"/s,
	'a wrong password is refused by the server');
like(check('service=ours sslmode=disable channel_binding=disable'), qr/^1 error: .*no pg_hba\.conf entry/s,
	'the server refuses a connection without TLS');
like(check('service=theirs'), qr/^[12] error: .*definition of service "theirs" not found/s, 'a service that does not exist is refused');

# The certificate expires and the password changes while it records.
sub end_connection
{
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'watcher'});
	return;
}

sub use_certificate
{
	my ($name) = @_;

	$node->append_conf('postgresql.conf', "ssl_cert_file = '$dir/$name.crt'\nssl_key_file = '$dir/$name.key'");
	$node->reload;
	return;
}

my $tape = "$dir/recorded";
my $since = moment($node);
my $recorder = record('service=ours', $tape);
wait_until('ticks', sub { ticks($tape, $since) >= 3 });
is( $node->safe_psql('postgres', q{SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'watcher'}),
	't', 'the recorder uses TLS');
use_certificate('expired');
wait_until('an expired certificate', sub { check('service=ours') =~ /^1 error: .*certificate verify failed/s });
ok(1, 'an expired certificate is refused');
end_connection();
# an attempt has failed once the server's log has it
wait_until('an attempt', sub { slurp_file($node->logfile) =~ /certificate expired.*certificate expired/s });
use_certificate('good');
wait_for_gap($tape, 1);
$since = moment($node);
wait_until('ticks again', sub { ticks($tape, $since) >= 3 });
# a busy machine may have more gaps, from ticks that it missed
my @lost = grep { /connection to server was lost/ } markers($tape, 'gap');
is_deeply([ scalar markers($tape, 'start'), scalar @lost ], [ 1, 1 ], 'with a new certificate recording goes on after a gap')
  or diag(join "\n", markers($tape, 'gap'));
is($recorder->end('TERM'), 0, 'the recorder ends');

# A password command runs again for each connection.
write_secret('token', "right\n");
$since = moment($node);
$recorder = record("service=ours passfile=$dir/wrong", $tape, args => [ '--password-command', "cat '$dir/token'" ]);
wait_until('ticks', sub { ticks($tape, $since) >= 3 });
$node->safe_psql('postgres', q{ALTER ROLE watcher PASSWORD 'another'});
my $gaps = () = markers($tape, 'gap');
end_connection();
wait_until('a refusal', sub { slurp_file($node->logfile) =~ /password authentication failed.*password authentication failed/s });
write_secret('token', "another\n");
wait_for_gap($tape, $gaps + 1);
$since = moment($node);
wait_until('ticks', sub { ticks($tape, $since) >= 3 });
ok(1, 'a new password is read from its file');
is($recorder->end('TERM'), 0, 'the recorder ends again');
$node->stop;
done_testing();
