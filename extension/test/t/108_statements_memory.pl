# The operating system refuses memory to a session. If the statistics lack it, a text is
# missing; if the statement lacks it, the server reports the error.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $mb = 1024 * 1024;
my $node = statements_cluster('refused', conf => q{
tacho.query_text_memory_reserved = 128MB
tacho.query_text_memory = 128MB
log_statement = none
log_min_error_statement = panic
log_min_messages = fatal
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# One constant, and a comment that makes the text long. Storing its text needs several
# times the memory of executing it.
sub statement
{
	my ($n) = @_;
	return "with refused_$n as (select 1) select * /* " . 'x' x $mb . " */ from refused_$n";
}

# Runs a statement in a session that may grow by $room bytes only.
sub limited
{
	my ($n, $room) = @_;
	my ($stdout, $stderr);
	my $script = <<'END' . statement($n) . ";\n" . <<'END';
select pg_backend_pid() as pid \gset
\setenv BACKEND :pid
\! prlimit --pid $BACKEND --as=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$BACKEND/status) * 1024 + ROOM)):
END
\! prlimit --pid $BACKEND --as=unlimited:
select 'the session lives';
END
	$script =~ s/ROOM/$room/;
	$node->psql('postgres', $script, stdout => \$stdout, stderr => \$stderr,
		on_error_stop => 0);
	return ($stdout, $stderr);
}

sql('select tacho.statements_reset()');
my $steps = 48;
my ($executed, $refused, $alive, $foreign) = (0, 0, 0, '');
for my $n (1 .. $steps)
{
	my ($stdout, $stderr) = limited($n, $n * $mb / 4);
	$alive++ if $stdout =~ /the session lives/;
	$executed++ if $stdout =~ /^1$/m;
	$refused++ if $stderr =~ /ERROR:  out of memory/;
	$foreign .= $stderr if $stderr =~ /tacho|ERROR:  (?!out of memory)/;
}
is($alive, $steps, 'every session goes on');
is($executed + $refused, $steps, 'each statement is executed or lacks memory itself');
cmp_ok($refused, '>', 0, 'some statements lacked memory');
is($foreign, '', 'no error comes from tacho');

my $none = sql(q{select count(*) from tacho.statements where query is null and queryid is not null});
my $some = sql(q{select count(*) from tacho.statements where query ~ '^with refused'});
is(sql('select texts_missing, skipped from tacho.statements_info'), '0|0', 'memory for texts was not exhausted');
cmp_ok($none, '>', 0, "some of $executed executed statements have no text");
cmp_ok($some, '>', 0, 'some of the executed statements have a text');
is(sql(q{select sum(calls) from tacho.statements
	where queryid is not null and (query is null or query ~ '^with refused')}),
	$executed, 'each executed statement is counted');

# the text comes with the next execution
sql(statement($_)) for 1 .. $steps;
is( sql(q{select count(*), sum(calls), count(*) filter (where query ~ '^with refused_\d+ as \(select .1\) select')
	from tacho.statements where query ~ '^with refused'}),
	join('|', $steps, $executed + $steps, $steps), 'with memory each statement gets its text');
$node->stop;
done_testing();
