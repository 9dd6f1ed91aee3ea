#!/usr/bin/env perl
# usage: tools/same-answers.pl OLD NEW [-n QUESTIONS] [-s SEED] [-j JOBS] [-m MINUTES] [-f FUNCTION] [-w] [TAPE]...
#
# Asks two programs "tacho" the same random questions (default 13,500) and reports every
# difference of a byte in rows, messages or exit code: a program from before a change is
# the oracle for one after it. The histories are the inputs of conformance/ and made-up
# sessions, imported by OLD, the golden files, and TAPEs; and a damaged copy of each.
# Prints the number of questions that got rows, an error, or a warning of damage, by
# function. Stops after MINUTES. With FUNCTION it asks only this one. With -w the words of
# messages may differ, not their severities and SQLSTATEs: each pair of words is listed
# once. Exit 1 if answers differ.
use strict;
use warnings;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use FindBin;
use Getopt::Long;
use lib $FindBin::RealBin;
use Catalog qw(dimensions);
use JSON::PP qw(decode_json encode_json);
use List::Util qw(sum);
use POSIX qw(strftime);

my %option = (n => 13_500, s => int(rand(2**31)), j => 2, m => 1_440);
GetOptions(\%option, 'n=i', 's=i', 'j=i', 'm=i', 'f=s', 'w') && @ARGV >= 2 or die "usage: $0 OLD NEW [-n QUESTIONS] [-s SEED] [-j JOBS] [-m MINUTES] [-f FUNCTION] [-w] [TAPE]...\n";
my ($old, $new, @tapes) = @ARGV;
my $root = "$FindBin::RealBin/..";
my $scratch = tempdir('tacho-same-XXXXXX', TMPDIR => 1, CLEANUP => 1);

my @dimensions = dimensions();
# functions about statements and measurements take only these filters
my %filters = (samples => \@dimensions, statements_history => [qw(query_id database username)],
	server_history => [qw(metric object)]);
# arguments of each function; all have since, until, tz and node, except those left out below
my %functions = (
	status => [], periods => [qw(until FILTERS)], markers => [qw(WINDOW)],
	aas => [qw(WINDOW bucket FILTERS)], summary => [qw(WINDOW FILTERS)],
	timeline => [qw(WINDOW bucket by n FILTERS)],
	top => [qw(dimension WINDOW n bucket order_by by FILTERS)],
	compare => [qw(dimension WINDOWS n bucket FILTERS)], changes => [qw(at WINDOW n)],
	samples => [qw(WINDOW n FILTERS)], sessions => [qw(WINDOW n FILTERS)],
	blocking => [qw(at WINDOW n)], report => [qw(at WINDOW n FILTERS)],
	chart => [qw(WINDOW bucket by n width ascii FILTERS)],
	server_history => [qw(WINDOW bucket METRICS)],
	statements_history => [qw(WINDOW bucket n order_by STATEMENTS)],
	tables_history => [qw(WINDOW bucket n order_by DATABASE)],
	indexes_history => [qw(WINDOW bucket n order_by DATABASE)],
	errors_history => [qw(WINDOW bucket n sqlstate STATEMENTS)],
	latency_history => [qw(WINDOW bucket STATEMENTS)],
	plans => [qw(WINDOW n STATEMENTS)],
	plan_changes => [qw(WINDOW n STATEMENTS)],
	queries => [qw(WINDOW n order_by FILTERS)],
	plan => [qw(plan_id STATEMENTS)],
);
my @functions = sort keys %functions;
die "error: no function $option{f}\n" if $option{f} && !$functions{ $option{f} };

sub one_of { return $_[int rand @_]; }
sub often { return rand() < $_[0]; }
sub utc { my ($us) = @_; return strftime('%Y-%m-%dT%H:%M:%S', gmtime int($us / 1e6)) . sprintf '.%06dZ', $us % 1e6; }

# Runs a program: exit code, standard output and error.
sub answer
{
	my @command = @_;
	my $errors = "$scratch/errors.$$";
	my $child = open(my $from, '-|') // die "error: fork: $!\n";
	if (!$child)
	{
		open STDERR, '>', $errors or die;
		exec { $command[0] } @command or POSIX::_exit(127);
	}
	my $out = do { local $/; <$from> } // '';
	close $from;
	my $code = $?;
	open my $file, '<', $errors or die "error: $errors: $!\n";
	return ($code, $out, do { local $/; <$file> } // '');
}

sub must { my @command = @_; my ($code, undef, $errors) = answer(@command); die "error: @command: $errors\n" if $code; return; }

# ---- histories ----

sub conformance
{
	my ($tape) = @_;
	for my $path (sort glob "$root/conformance/cases/*.json")
	{
		open my $file, '<', $path or die "error: $path: $!\n";
		my $case = decode_json(do { local $/; <$file> });
		my $with = $case->{with} // {};
		must($old, 'import', 'sessions', "$root/conformance/inputs/$case->{input}", '--tape', $tape,
			'--node', $case->{node}, map { "--with=$_=$root/conformance/inputs/$with->{$_}" } sort keys %$with);
	}
	return;
}

# Ticks a second with some sessions, whose attributes stay the same for a while.
sub made_up
{
	my ($tape, $seconds, $sessions, $change) = @_;
	my $csv = "$scratch/made-up.csv";
	open my $file, '>', $csv or die "error: $csv: $!\n";
	print $file "time,pid,state,wait_event_type,wait_event,query_id,database,username,application,blocked_by\n";
	my @now;
	for my $second (0 .. $seconds)
	{
		next if $second % 997 > 960; # unobserved
		my $time = utc((1_772_409_600 + $second) * 1e6);
		print $file "$time,,,,,,,,,\n" if $second % 61 == 0;
		next if $second % 61 == 0;
		for my $pid (100 .. 99 + $sessions)
		{
			$now[$pid] = undef if often($change);
			$now[$pid] //= often(0.3) ? '' : join ',', one_of('active', 'active', 'active', 'idle in transaction'),
			  one_of('IO,DataFileRead', 'Lock,tuple', 'LWLock,WALWrite', ',', 'Client,ClientRead'),
			  one_of(map { 7 ** $_ } 1 .. 20), one_of(qw(shop crm)), one_of(qw(ann bob)), one_of('web', 'psql', ''),
			  often(0.1) ? 100 + int rand $sessions : '';
			print $file "$time,$pid,$now[$pid]\n" if $now[$pid];
		}
	}
	close $file or die;
	must($old, 'import', 'sessions', $csv, '--tape', $tape, '--with', 'statements=' . statements($seconds), '--with', 'server=' . server($seconds));
	return;
}

# Counters of eight statements in each minute.
sub statements
{
	my ($seconds) = @_;
	my $csv = "$scratch/statements.csv";
	open my $file, '>', $csv or die "error: $csv: $!\n";
	print $file join(',', qw(time elapsed_ms user_oid username database_oid database query_id toplevel calls total_exec_time_ms rows),
		map { "histogram_$_" } 0 .. 23), "\n";
	for (my $second = 60; $second < $seconds; $second += 60)
	{
		for my $query (grep { often(0.7) } 1 .. 8)
		{
			my @counts = map { int rand 5 } 0 .. 23;
			print $file join(',', utc((1_772_409_600 + $second) * 1e6), 60_000, 10, one_of(qw(ann bob)), 5, one_of(qw(shop crm)),
				7 ** $query, one_of(1, 1, 0), sum(@counts), int rand 1_000, int rand 1_000, @counts), "\n";
		}
	}
	close $file or die;
	return $csv;
}

# Measurements of a server every ten seconds.
sub server
{
	my ($seconds) = @_;
	my $csv = "$scratch/server.csv";
	open my $file, '>', $csv or die "error: $csv: $!\n";
	print $file "time,elapsed_ms,vcpus_x100,load_1_x100,wal_bytes\n";
	for (my $second = 10; $second < $seconds; $second += 10)
	{
		print $file join(',', utc((1_772_409_600 + $second) * 1e6), 10_000, 400, map { int rand 1_000 } 1, 2), "\n" if often(0.9);
	}
	close $file or die;
	return $csv;
}

sub copied
{
	my ($from, $tape) = @_;
	mkdir $tape;
	copy($_, $tape) or die "error: $_: $!\n" for grep { -f } glob "$from/*";
	return;
}

# Changes some bytes of some files, or cuts their end.
sub damaged
{
	my ($tape) = @_;
	for my $path (grep { /\.(tape|open)$/ && -s && often(0.7) } glob "$tape/*")
	{
		my $size = -s $path;
		if (often(0.15)) { truncate $path, int rand $size or die; next; }
		open my $file, '+<:raw', $path or die "error: $path: $!\n";
		for (1 .. one_of(1, 1, 3, 20))
		{
			seek $file, int rand $size, 0;
			print $file chr int rand 256;
		}
		close $file or die;
	}
	return;
}

# Times and values of each node of a history, taken from the rows of some functions.
sub learn
{
	my ($tape) = @_;
	return [ map { learn_node($tape, $_) } nodes($tape) ];
}

sub learn_node
{
	my ($tape, $node) = @_;
	my (@times, %values);
	for my $function (sort keys %filters)
	{
		my @window = ('--since=2000-01-01T00:00:00Z', '--until=2026-11-01T00:00:00Z', $function eq 'server_history' ? () : '--n=50000');
		my ($names, @rows) = map { [ split /\t/ ] } split /\n/, (answer($old, 'query', $function, '--tape', $tape, "--node=$node", @window))[1];
		for my $row (@rows)
		{
			my %row;
			@row{@$names} = @$row;
			my $time = $row{sample_time} // '';
			push @times, $time =~ s/ /T/r =~ s/\+00$/Z/r if $time =~ /\+00$/;
			($row{$_} // '\N') ne '\N' && ($values{$_}{ $row{$_} } = 1) for @{ $filters{$function} };
		}
	}
	@times = @times ? sort @times : ('2026-03-02T00:00:00Z', '2026-03-02T01:00:00Z');
	return { tape => $tape, node => $node, times => \@times, values => { map { ($_ => [ sort keys %{ $values{$_} } ]) } keys %values } };
}

sub nodes
{
	my ($tape) = @_;
	my ($nodes) = (answer($old, 'query', 'status', '--tape', $tape, '--node=all'))[1] =~ /^node\t(.*)$/m;
	return ('all', split /, /, $nodes // '');
}

# ---- questions ----

sub moment
{
	my ($known) = @_;
	my $time = one_of(@{ $known->{times} });
	# totals can answer for whole minutes
	return often(0.4) ? $time =~ s/:\d\d(\.\d+)?Z/:00Z/r : $time;
}

sub window
{
	my ($known, $since, $until) = @_;
	my @moments = sort map { moment($known) } 1, 2;
	@moments = ($known->{times}[0] =~ s/:\d\d(\.\d+)?Z/:00Z/r, $known->{times}[-1] =~ s/T\d\d.*/T23:59:59Z/r) if often(0.4);
	return ("--$since=$moments[0]", "--$until=$moments[1]");
}

sub filter
{
	my ($known, $name) = @_;
	my @values = @{ $known->{values}{$name} // [] };
	my $value = sub { return @values && often(0.95) ? one_of(@values) : one_of('(null)', 'nothing', 17); };
	my $text = often(0.3) ? join ',', map { $value->() } 1 .. 3 : $value->();
	$text = "!$text" if often(0.25) && $text !~ /,/;
	return "--$name=$text" =~ s/_(?=[a-z_]*=)/-/gr;
}

my %values = (
	bucket => sub { return one_of(qw(1s 10s 60s 300s 3600s 86400s 7s 0.5s)) =~ s/([\d.]+)s/int($1 * 1e6) . 'us'/er; },
	n => sub { return one_of(1, 3, 10, 10, 1000, -1); },
	width => sub { return one_of(1, 20, 40, 1000); },
	by => sub { return one_of(@dimensions, 'nothing'); },
	dimension => sub { return one_of(@dimensions); },
	order_by => sub { return one_of($_[0] eq 'top' ? qw(avg peak p99 sessions) : $_[0] eq 'tables_history' ? qw(work scans tuples_updated bytes) : $_[0] eq 'indexes_history' ? qw(unused scans growth_bytes) : qw(time mean p95 calls rows running_time), 'nothing'); },
	plan_id => sub { return one_of(1, 7, 'nothing'); },
	sqlstate => sub { return one_of(23505, '40P01', 57014, '23', '!42', '40,57', '(null)'); },
	ascii => sub { return one_of(qw(true false)); },
);

sub argument
{
	my ($known, $function, $name) = @_;
	return window($known, 'since', 'until') if $name eq 'WINDOW';
	return (window($known, 'since-1', 'until-1'), window($known, 'since-2', 'until-2')) if $name eq 'WINDOWS';
	return "--$name=" . moment($known) if $name eq 'until';
	return often(0.3) ? '--at=' . moment($known) : () if $name eq 'at';
	return map { often(0.15) ? filter($known, $_) : () } @{ $filters{server_history} } if $name eq 'METRICS';
	return map { often(0.2) ? filter($known, $_) : () } @{ $filters{statements_history} } if $name eq 'STATEMENTS';
	return often(0.2) ? filter($known, 'database') : () if $name eq 'DATABASE';
	if ($name eq 'FILTERS')
	{
		return (often(0.4) ? '--scope=' . one_of(qw(load foreground all)) : (), often(0.15) ? '--by-leader=true' : (),
			often(0.4) ? map { filter($known, one_of(@dimensions)) } 1 : ());
	}
	return '--dimension=' . $values{dimension}->() if $name eq 'dimension';
	return often(0.5) ? "--$name=" . $values{$name}->() : () if $name ne 'order_by';
	return often(0.5) ? '--order-by=' . $values{order_by}->($function) : ();
}

sub question
{
	my ($known) = @_;
	my $function = $option{f} // one_of(@functions, qw(top top top timeline aas compare));
	my @arguments = map { argument($known, $function, $_) } @{ $functions{$function} };
	# --at excludes a window
	@arguments = grep { !/^--(since|until)=/ } @arguments if grep { /^--at=/ } @arguments;
	push @arguments, "--node=$known->{node}" if often(0.9);
	push @arguments, '--tz=' . one_of(qw(UTC Europe/Berlin America/St_Johns)) if often(0.3);
	push @arguments, '--format=json' if often(0.1);
	return ($function, '--tape', $known->{tape}, @arguments);
}

# Both answers; if they differ, both programs get the question again. A question that runs for
# a second reports its progress, and an age depends on the time of the answer.
sub asked_both
{
	my @question = @_;
	my @said;
	for (1, 2)
	{
		@said = map { [ answer($_, 'query', @question) ] } $old, $new;
		$_->[1] =~ s/(last_tick_age_s\W+(?:value\W+)?)\d+/$1/ for @said;
		last if "@{ $said[0] }" eq "@{ $said[1] }";
	}
	without_words(@said) if $option{w};
	return @said;
}

# Pairs of messages that differ in their words alone.
my %words;

# Replaces messages by their severities and SQLSTATEs, and notes pairs of different words.
sub without_words
{
	my ($before, $after) = @_;
	my @messages = map { [ grep { /^(?:[A-Z]+\t|[a-z]+: )/ && !/^(?:detail|hint): / } split /\n/, $_->[2] ] } $before, $after;
	my $shape = sub { return $_[0] =~ /^([A-Z]+\t\w+)\t/ ? $1 : $_[0] =~ /^(\w+): / ? $1 : $_[0] };
	for my $at (0 .. $#{ $messages[0] })
	{
		my @pair = map { ($_->[$at] // '') =~ s/\t/ /gr =~ s/"[^"]*"/"…"/gr =~ s/-?\d[\d:.+-]*/N/gr } @messages;
		$words{"$pair[0] -> $pair[1]"} = 1 if $pair[0] ne $pair[1];
	}
	$_->[0][2] = join "\n", map { $shape->($_) } @{ $_->[1] } for [ $before, $messages[0] ], [ $after, $messages[1] ];
	return;
}

# The first line that differs.
sub difference
{
	my ($before, $after) = map { [ split /\n/ ] } @_;
	my ($line) = grep { ($before->[$_] // '') ne ($after->[$_] // '') } 0 .. $#$before + 1;
	return map { '    ' . ($_->[ $line // 0 ] // '(nothing)') . "\n" } $before, $after;
}

# Asks a share of the questions. Prints differences, and at the end lines of "FUNCTION
# WHAT COUNT".
sub ask
{
	my ($job, @known) = @_;
	my %counts;
	srand $option{s} * 1_000 + $job;
	for (my $asked = $job; $asked < $option{n} && time < $^T + $option{m} * 60; $asked += $option{j})
	{
		my @question = question(one_of(@{ one_of(@known) }));
		my ($before, $after) = asked_both(@question);
		my ($code, $out, $errors) = @$before;
		my @what = $code ? 'refused' : $out =~ /\n(?!\\\.)./ ? 'rows' : 'none';
		push @what, 'warned' if $errors =~ /^WARNING/m;
		push @what, 'differs' if "@$before" ne "@$after";
		$counts{"$question[0] $_"}++ for 'asked', @what;
		print STDERR "differs: tacho query @question\n", difference("@$before", "@$after") if $what[-1] eq 'differs';
	}
	print "$_ $counts{$_}\n" for keys %counts;
	print "words $_\n" for keys %words;
	return;
}

srand $option{s};
print "seed $option{s}\n";
conformance("$scratch/conformance");
copied("$root/tape/tests/golden/$_", "$scratch/$_") for qw(v1 v2 v3);
made_up("$scratch/few", 4_000, 4, 0.02);
made_up("$scratch/many", 1_500, 60, 0.2);
push @tapes, map { "$scratch/$_" } qw(conformance v1 v2 v3 few many);
my @all = @tapes;
for my $tape (@tapes)
{
	copied($tape, my $copy = "$scratch/damaged" . @all);
	damaged($copy);
	push @all, $copy;
}
# in a process of its own, because a small process forks quickly
my @known = do {
	my $child = open(my $from, '-|') // die "error: fork: $!\n";
	if (!$child) { $| = 1; print encode_json([ map { learn($_) } @all ]); POSIX::_exit(0); }
	@{ decode_json(do { local $/; <$from> }) };
};

my %counts;
my @jobs = map {
	my $child = open(my $from, '-|') // die "error: fork: $!\n";
	if (!$child) { $| = 1; ask($_ - 1, @known); POSIX::_exit(0); }
	$from;
} 1 .. $option{j};
for my $from (@jobs) { while (<$from>) { if (/^words (.*)/) { $words{$1} = 1; } elsif (/^(\w+ \w+) (\d+)$/) { $counts{$1} += $2; } } close $from or die "error: a job failed\n"; }

my @columns = qw(rows none refused warned differs);
print join("\t", 'function', @columns), "\n";
print join("\t", $_, map { $counts{$_} // 0 } do { my $function = $_; map { "$function $_" } @columns }), "\n" for @functions;
print "words: $_\n" for sort keys %words;
my ($asked, $differs) = map { my $what = $_; sum(map { $counts{"$_ $what"} // 0 } @functions) } qw(asked differs);
print "$asked questions of " . @all . " histories: $differs answers differ\n";
exit($differs ? 1 : 0);
