# tacho-record keeps no constant of any statement, however it is written: literals of
# every kind, at random, in every kind of utility statement, and in planned ones whose
# texts the server itself has with constants. No exported file has one.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoRecord qw(record record_program ticks wait_until);

record_program();
my $node = PostgreSQL::Test::Cluster->new('constants');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'pg_stat_statements'
max_prepared_transactions = 5
wal_level = logical
max_wal_senders = 2
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE t (a text, n numeric);
	CREATE PROCEDURE p(a text, n numeric) LANGUAGE sql AS 'SELECT';
	CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'});

my $seed = $ENV{SEED} // time;
note("SEED=$seed");
srand($seed);

# Content of a literal: a string that stands nowhere else.
my $mark = sprintf 'mrk%06d', rand 1e6;
my $digits = sprintf '7741%05d', rand 1e5;

sub any { return $_[rand @_] }

# A string as a literal, of any kind in one piece.
sub text_literal
{
	my ($text) = @_;
	my $doubled = $text =~ s/'/''/gr;
	my $escaped = $text =~ s/([\\'])/\\$1/gr;

	return any("'$doubled'", "E'$escaped'", "e'$doubled'", "\$\$$text\$\$", "\$a_1\$$text\$a_1\$", "U&'$doubled'");
}

# The same, or of two pieces in two lines; psql sends no escapes in the second one.
sub string
{
	my $text = any('', "it's ", '/* ', '-- ', '"', '$1 ') . $mark . any('', ' x', '$ ', "''");
	my $escaped = $text =~ s/'/\\'/gr;

	return any((text_literal($text)) x 4, "'$mark'\n\t'$mark'", "E'$escaped'\n'$mark'");
}

sub number { return any($digits, "-$digits", "$digits.5", ".$digits", "1e-$digits" =~ s/-\d+/3/r . $digits % 7, "${digits}e2") }
sub body { return text_literal("BEGIN PERFORM '$mark', $digits; END") }

# :s a string, :n a number, :b a body of plpgsql, :q of SQL
my @templates = split /\n/, <<'SQL';
SET app.api_key = :s
SET app.key TO :s
SET app.number = :n
ALTER ROLE watcher SET app.api_key = :s
ALTER DATABASE postgres SET app.key = :s
CALL p(:s, :n)
CALL p(n => :n, a => :s)
DO :b
COPY (SELECT :s, :n FROM t WHERE a = :s) TO '/dev/null'
COPY t FROM PROGRAM 'true' (NULL ':m') /* a comment */ -- and another
DECLARE c CURSOR WITH HOLD FOR SELECT :s, n FROM t WHERE n = :n
BEGIN
INSERT INTO t VALUES (:s, :n)
PREPARE TRANSACTION :m1
ROLLBACK PREPARED :m1
CREATE TABLE made AS SELECT :s AS a, :n AS n
CREATE MATERIALIZED VIEW kept AS SELECT :s AS a, :n AS n
SELECT :s AS a INTO selected FROM t WHERE n > :n
CREATE VIEW shown AS SELECT :s AS a WHERE :n > 2
EXPLAIN (COSTS off) SELECT a FROM t WHERE a = :s AND n < :n
NOTIFY channel, :s
COMMENT ON TABLE t IS :s
CREATE ROLE made PASSWORD :s VALID UNTIL '2030-01-01'
ALTER ROLE made PASSWORD :s
CREATE FUNCTION f1() RETURNS text LANGUAGE sql AS :q
CREATE FUNCTION f2() RETURNS text LANGUAGE sql RETURN :s
CREATE FUNCTION f3(a text DEFAULT :s) RETURNS void LANGUAGE plpgsql SET app.key = :s AS :b
ALTER FUNCTION f1() SET app.key = :s
CREATE AGGREGATE agg(text) (SFUNC = textcat, STYPE = text, INITCOND = :s)
CREATE TABLE checked (a text DEFAULT :s CHECK (a <> :s), n numeric(10, 2) DEFAULT :n)
ALTER TABLE checked ALTER a SET DEFAULT :s
ALTER TABLE checked ADD CONSTRAINT c CHECK (n <> :n AND a <> :s)
CREATE TABLE parts (a text) PARTITION BY LIST (a)
CREATE TABLE part PARTITION OF parts FOR VALUES IN (:s, 'other')
CREATE INDEX ON t ((a || :s)) WHERE n <> :n
CREATE STATISTICS st ON (a || :s), n FROM t
CREATE TYPE e AS ENUM (:m1)
ALTER TYPE e ADD VALUE :m2 AFTER :m1
ALTER TYPE e RENAME VALUE :m1 TO :m3
CREATE DOMAIN d AS text DEFAULT :s CHECK (VALUE <> :s)
ALTER DOMAIN d SET DEFAULT :s
CREATE RULE r AS ON UPDATE TO t WHERE old.a = :s DO INSTEAD SELECT :s, :n
CREATE TRIGGER r BEFORE UPDATE ON t FOR EACH ROW WHEN (new.a = :s) EXECUTE FUNCTION trg(:s)
CREATE POLICY p ON t USING (a = :s) WITH CHECK (n = :n)
CREATE FOREIGN DATA WRAPPER w OPTIONS (api_key :s)
CREATE SERVER s TYPE :s VERSION :s FOREIGN DATA WRAPPER w OPTIONS (host :s)
CREATE USER MAPPING FOR watcher SERVER s OPTIONS (api_key :s)
CREATE FOREIGN TABLE ft (a text OPTIONS (b :s)) SERVER s OPTIONS (c :s)
CREATE PUBLICATION pub FOR TABLE t WHERE (a = :s)
CREATE SEQUENCE seq START 774199999
ALTER SYSTEM SET application_name = :m1
SELECT a FROM t WHERE a = :s ORDER BY 1
PREPARE prepared AS SELECT a, n FROM t WHERE a = :s AND n = :n
SQL

sub filled
{
	my ($template) = @_;
	my %value = (s => \&string, n => \&number, b => \&body, q => sub { text_literal("SELECT '$mark'") }, m => sub { $mark });

	$template =~ s/:m(\d)/text_literal("$mark $1")/ge;
	$template =~ s/:([snbqm])\b/$value{$1}->()/ge;
	return $template;
}

sub psql { my ($code, undef, $error) = $node->psql('postgres', $_[0]); return $error }

my @sql = map { filled($_) } @templates;
$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
my $tape = $node->basedir . '/recorded';
my $recorder = record($node->connstr('postgres') . ' user=watcher', $tape, args => [ '--statements-interval', 1000 ]);
# counts from before the first pass belong to no interval
wait_until('the first pass', sub { ticks($tape, '2000-01-01T00:00:00Z') >= 30 });
is(psql(join "\n;\n", @sql, ''), '', 'every statement is executed') or die 'not all';
# the server has lost the text, and stores the next one as it was sent
is(psql("PREPARE again AS SELECT a FROM t WHERE a = '$mark again' AND n = $digits; EXECUTE again;
	SELECT pg_stat_statements_reset(userid, dbid, queryid) FROM pg_stat_statements WHERE query ~ 'again AS';
	EXECUTE again"), '', 'a prepared statement whose entry was removed is executed');
psql(q{SET standard_conforming_strings = off; SET escape_string_warning = off;
	CALL p('it\'s } . $mark . q{', 1); CALL p('x\\\\', } . $digits . q{)});

sub exported
{
	return join '', map { (run_command([ $ENV{TACHO_PROGRAM}, 'export', $_, '--tape', $tape ]))[0] }
	  qw(texts sessions statements markers server);
}

my @wanted = split /\n/, $node->safe_psql('postgres', q{
	SELECT DISTINCT queryid FROM pg_stat_statements WHERE userid <> 'watcher'::regrole AND query !~ 'pg_stat_statements'});
cmp_ok(scalar @wanted, '>', @sql / 2, 'the server has the texts of the statements');
my $marked = $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_statements WHERE query ~ '$mark|$digits'");
cmp_ok($marked, '>', 20, 'the texts of the server have constants');
my @missing;
eval {
	wait_until('all texts', sub {
		my ($texts) = run_command([ $ENV{TACHO_PROGRAM}, 'export', 'texts', '--tape', $tape ]);
		@missing = grep { $texts !~ /(?<![\d-])\Q$_\E\b/ } @wanted;
		return !@missing;
	});
	1;
} or do {
	diag($node->safe_psql('postgres', "SELECT query FROM pg_stat_statements WHERE queryid IN (" . join(',', @missing) . ')'));
	die $@;
};
my $all = exported();
is(() = $all =~ /$mark|$digits/g, 0, 'the history has no constant')
  or diag(grep { /$mark|$digits/ } map { "$_\n" } split /\n/, $all);
like($all, qr/$_/, "the rest of it is: $_") foreach (
	qr/COPY t FROM PROGRAM \$1 \(NULL \$2\) \/\* a comment \*\/ -- and another/,
	qr/CREATE USER MAPPING FOR watcher SERVER s OPTIONS \(api_key \$1\)/,
	qr/WHERE a = \$1 AND n = -?\$2/);
is($recorder->end('TERM'), 0, 'the recorder ends');

# With --raw-texts the constants are kept.
$tape .= '_raw';
$recorder = record($node->connstr('postgres') . ' user=watcher', $tape, args => [ '--statements-interval', 1000, '--raw-texts' ]);
wait_until('a constant', sub {
	psql("CALL p('$mark raw', $digits)");
	return exported() =~ /CALL p\('$mark raw', $digits\)/ || $node->pg_version >= 17 && exported() =~ /CALL p/;
});
ok(1, 'raw texts have constants');
is($recorder->end('TERM'), 0, 'the recorder of raw texts ends');

done_testing();
