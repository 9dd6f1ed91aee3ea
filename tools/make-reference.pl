#!/usr/bin/env perl
# usage: tools/make-reference.pl [--check | --programs DIR [--check]]
#
# Writes docs/reference from the sources: the reader functions with their arguments and
# columns, the settings, the counters of statements, the columns of the history, the metrics.
# With --programs it writes docs/reference/commands from the help of the programs in DIR.
# --check writes nothing, names the pages that differ, and fails if there is one.
#
#   functions        extension/sql/readers/*.sql, statements.sql: arguments, columns, comments
#   their arguments  tape/src/query/functions, tape/src/query/ask/request.rs: the help
#   their columns    catalog/answers.h, and dimensions (samples.h, derived.h) and counters
#   settings         catalog/settings.h
#   history          catalog/samples.h
#   metrics          web/src/metrics.rs, and measurements of catalog/samples.h
use strict;
use warnings;
use utf8;
use open qw(:std :utf8);
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use FindBin;
use lib $FindBin::RealBin;
use Catalog qw(declarations described_dimensions);

chdir dirname($0) . '/..' or die $!;
my ($check, $programs, %pages) = (0);
while (defined(my $option = shift)) {
	if ($option eq '--check') { $check = 1 }
	elsif ($option eq '--programs' and @ARGV) { $programs = shift }
	else { open my $self, '<', $0 or die $!; /^#!/ or /^# ?(.*)/ ? print STDERR "$1\n" : last while <$self>; exit 2 }
}
my $made = "<!-- made by tools/make-reference.pl: edit the source, then run it -->\n";

sub content { my ($file) = @_; open my $in, '<', $file or die "$file: $!\n"; local $/; return scalar <$in> }
sub cell { my ($text) = @_; $text =~ s/\|/\\|/g; return $text }
sub sentence { my ($text) = @_; return ucfirst($text) . ($text =~ /[.?!]$/ ? '' : '.') }
sub row { return '| ' . join(' | ', map { cell($_) } @_) . " |\n" }
sub table { my (@head) = @_; return row(@head) . '|' . '---|' x @head . "\n" }
sub code { return map { $_ eq '' ? '' : "`$_`" } @_ }

my @samples = declarations('samples.h');
my @counters = declarations('counters.h');
my @named = described_dimensions();
my @dimensions = map { $_->[0] } @named;
my %dimension = map { @$_ } @named;

# Descriptions of columns: [unit, text] by "name" and "function name"; those that were used.
my (%answer, %used);
foreach (declarations('answers.h')) {
	my ($kind, @fields) = @$_;
	my $name = $kind eq 'ANSWER_OF' ? join(' ', splice @fields, 0, 2) : shift @fields;
	die "catalog/answers.h: \"$name\" twice\n" if $answer{$name};
	$answer{$name} = [ $fields[0] eq 'none' ? '' : $fields[0], $fields[1] ];
}
my %counter = map { $_->[2] => [ $_->[4] eq 'one' ? '' : $_->[4], $_->[8] =~ s/; ids \d+ to \d+//r ] } @counters;

sub described {
	my ($function, $name) = @_;
	foreach my $key ("$function $name", $name) { if ($answer{$key}) { $used{$key} = 1; return $answer{$key} } }
	return $counter{$name} if $counter{$name};
	return [ '', $dimension{$name} ] if $dimension{$name};
	if ($function eq 'compare' and $name =~ /^(.*)_([12])$/) {
		my ($unit, $text) = @{ described($function, $1) };
		return [ $unit, "$text, in the " . ($2 == 1 ? 'earlier' : 'later') . ' window' ];
	}
	if ($function eq 'plan_changes' and $name =~ /^(old|new)_(.*)$/) {
		my ($unit, $text) = @{ described($function, $2 eq 'calls' ? 'plan_calls' : $2) };
		return [ $unit, "$text; $1 plan" ];
	}
	die "tacho.$function: column \"$name\" has no description: add it to catalog/answers.h\n";
}

# The help of arguments in the sources: [help, default] by "name" and "function name".
sub argument_help {
	my %help;
	my $literal = qr/"((?:[^"\\]|\\.)*)"/;
	my $list = content('tape/src/query/ask/request.rs');
	while ($list =~ /pub const (\w+): Argument =\s*(?:Argument::new|window|filter)\(\s*(.*?)\);/gs) {
		my ($name, $rest) = ($1, $2);
		my @texts = map { s/\\(.)/$1/gr } $rest =~ /$literal/g;
		$help{$name} = [ $texts[1] // '', $texts[2] ];
	}
	foreach my $file (glob('tape/src/query/functions/*.rs'), glob('tape/src/query/functions/*/mod.rs')) {
		my ($function, $body) = content($file) =~ /^request! \{.*?of (\w+): \w+ \{\n(.*?)^    \}/ms or next;
		while ($body =~ /^\s+(\w+)\($literal, (?:None|Some\($literal\))\),/gm) {
			$help{"$function $1"} = [ map { defined ? s/\\(.)/$1/gr : undef } $2, $3 ];
		}
	}
	return %help;
}
my %help;
sub more_help {
	%help = argument_help();
	$help{tz} = [ 'Time zone of buckets and of times without a zone', 'the time zone of the session' ];
	$help{'explain function'} = [ 'Name of a reader function, such as top', undef ];
	$help{'explain dimension'} = $help{'top dimension'};
	$help{'explain n'} = $help{'top n'};
	$help{'explain order_by'} = $help{'top order_by'};
	$help{'statements showtext'} = [ 'false leaves texts out', undef ];
	$help{'statements called_since'} = [ 'Only rows that were planned, executed or failed since then, or had their extremes reset; all rows if it is before the start of the server', 'all rows' ];
	$help{'statements texts_since'} = [ 'Only texts that were kept since then', 'all texts' ];
	$help{'statements_reset userid'} = [ 'OID of the role; 0 means each', undef ];
	$help{'statements_reset dbid'} = [ 'OID of the database; 0 means each', undef ];
	$help{'statements_reset queryid'} = [ 'Identifier of the query; 0 means each', undef ];
	$help{'statements_reset minmax_only'} = [ 'Resets only the shortest and longest times', undef ];
	return;
}

# The columns that a marker of expand.awk stands for.
sub expanded {
	my ($marker) = @_;
	my @columns;
	foreach (@counters) {
		my (undef, undef, $name, $type, undef, $kind) = @$_;
		my $sql = $type eq 'double' ? 'double precision' : 'bigint';
		push @columns, [ $name, $type eq 'double' ? 'numeric' : 'bigint' ] if $marker eq 'SUMS' and $kind eq 'SUM';
		next if $marker eq 'SUMS' or $kind eq 'LONG';
		if ($kind eq 'SQUARE') { push @columns, map { [ $_ . $name =~ s/^square//r, $sql ] } qw(mean stddev) }
		elsif ($kind eq 'HISTOGRAM') { push @columns, map({ [ "p${_}_exec_time", 'double precision' ] } 50, 95, 99), [ $name, 'bigint[]' ] }
		else { push @columns, [ $name, $sql ] }
	}
	return @columns;
}

sub arguments_page {
	my ($name, $declared) = @_;
	my (@rows, $filters);
	foreach (grep { /\S/ } split /,?\n/, $declared) {
		if (m{/\* FILTERS \*/}) { $filters = 1; next }
		next if /^\s*out /;
		my ($argument, $type, $default) = /^\s*(\w+) (.*?)(?: default (.*))?$/ or die "tacho.$name: argument \"$_\"\n";
		my ($help, $words) = @{ $help{"$name $argument"} // $help{$argument} // die "tacho.$name: argument \"$argument\" has no help\n" };
		die "tacho.$name: argument \"$argument\" has no help\n" if $help eq '';
		$help =~ s/ \[default: (.*)\]// and $words = $1;
		$default = !defined $default ? 'must be given' : $default eq 'null' ? $words // '' : $default =~ s/^'(.*)'$/$1/r;
		push @rows, row(code($argument), $type, $default, $help);
	}
	return "Without arguments.\n" if !@rows and !$filters;
	return table('Argument', 'Type', 'Default', 'Means') . join('', @rows)
		. ($filters ? row('each [dimension](README.md#dimensions)', 'text', '', 'A filter: a value, a list `a,b`, or an exclusion `!value`') : '');
}

sub columns_page {
	my ($name, @columns) = @_;
	my @rows = map { my ($unit, $text) = @{ described($name, $_->[0]) }; row(code($_->[0]), $_->[1], $unit, $text) } @columns;
	return table('Column', 'Type', 'Unit', 'Means') . join '', @rows;
}

sub columns_of {
	my ($declared) = @_;
	return map { m{/\* (SUMS|COUNTERS) \*/} ? expanded($1) : /^\s*(?:out )?(\w+) (.*)$/ ? [ $1, $2 ] : () } split /,?\n/, $declared;
}

# The comment of an object: description and examples.
sub comment {
	my ($text) = @_;
	$text =~ s/''/'/g;
	$text =~ s/(?:Dimensions and filters|Filters): \{DIMENSIONS\}/Filters: each dimension/;
	my @examples = $text =~ /\b(select [^;]*;)/g;
	$text =~ s/ Example: select .*//s;
	return ($text, @examples);
}

# Functions that people call: names that begin with _ are parts of others.
sub functions {
	more_help();
	my @list;
	foreach my $file (glob('extension/sql/readers/*.sql'), 'extension/sql/statements.sql') {
		my $text = content($file);
		my %columns = $text =~ /^create function tacho\.(\w+)\([^)]*\)\nreturns table \(\n(.*?)\n\)$/gms;
		$text =~ s{^\t/\* COLUMNS OF (\w+) \*/$}{$columns{$1}}gm;
		my %comment = $text =~ /^comment on function tacho\.(\w+) is\n'(.*?)';$/gms;
		while ($text =~ /^create function tacho\.([a-z]\w*)\((.*?)\)\nreturns (?:table \(\n(.*?)\n\)|(setof record|record)|(\w+))$/gms) {
			my ($name, $declared, $table, $record, $type) = ($1, $2, $3, $4, $5);
			next if $name eq 'replace_pg_stat_statements';
			my ($about, @examples) = comment($comment{$name} // die "tacho.$name has no comment\n");
			my @columns = $table ? columns_of($table) : $record ? columns_of(join "\n", grep { /out / } split /\n/, $declared) : ();
			my $page = "$made# tacho.$name\n\n$about\n\n";
			$page .= "```sql\n" . join("\n", map { s/ (?=(?:from|where|order by) )/\n/gr } @examples) . "\n```\n\n" if @examples;
			$page .= "## Arguments\n\n" . arguments_page($name, $declared) . "\n";
			$page .= @columns ? "## Columns\n\n" . columns_page($name, @columns) : "Returns `$type`.\n";
			$pages{"functions/$name.md"} = $page;
			push @list, [ $name, $about =~ /^(.*?[.?:])(?: |$)/s ];
		}
	}
	my $index = "$made# Functions\n\nThe same names, arguments and columns hold in SQL (`tacho.top(…)`), in a shell (`tacho top`, with `-` for\n"
		. "`_`) and by HTTP (`/api/v1/top`). Null in a column of load means that nothing was observed; 0 means no load.\n\n"
		. table('Function', 'Answers');
	$index .= row("[`$_->[0]`]($_->[0].md)", $_->[1] =~ s/:$/./r) foreach sort { $a->[0] cmp $b->[0] } @list;
	$index .= "\n## Dimensions\n\nA dimension is an argument of `top`, `timeline` (`by`), `compare` and `chart` (`by`), and a filter of each\nfunction that reads samples.\n\n" . table('Dimension', 'Is');
	$index .= row(code($_), $dimension{$_}) foreach @dimensions;
	$pages{'functions/README.md'} = $index;
	my @unused = grep { !$used{$_} } sort keys %answer;
	die "catalog/answers.h: no column is described by: @unused\n" if @unused;
}

my %unit = (MS => 'ms', S => 's', KB => 'kB', MB => 'MB', GB => 'GB', min => 'min', h => 'h', d => 'd');

# A number with the largest unit that keeps it whole.
sub amount {
	my ($value, $unit) = @_;
	return $value if $unit eq 'NONE' or $value <= 0;
	my @scale = $unit eq 'MS' || $unit eq 'S' ? ([ MS => 1000 ], [ S => 60 ], [ min => 60 ], [ h => 24 ], [ d => 1 ])
		: ([ KB => 1024 ], [ MB => 1024 ], [ GB => 1024 ], [ TB => 1 ]);
	shift @scale while $scale[0][0] ne $unit;
	($value /= $scale[0][1], shift @scale) while $scale[0][1] > 1 and $value % $scale[0][1] == 0;
	return "$value $unit{ $scale[0][0] }";
}

sub settings {
	my %change = (POSTMASTER => 'restart', SIGHUP => 'reload', SUSET => 'reload, or a superuser in a session');
	my (%options, @rows);
	my @declared = declarations('settings.h');
	push @{ $options{ $_->[1] } }, $_->[2] foreach grep { $_->[0] eq 'OPTION' } @declared;
	foreach (@declared) {
		my ($kind, $name, undef, $default, @rest) = @$_;
		next if $kind eq 'OPTION';
		my ($short, $long) = splice @rest, -2;
		my $range = '';
		if ($kind eq 'INT_SETTING') {
			my ($min, $max, $unit) = @rest;
			$range = $max == 2147483647 ? 'from ' . amount($min, $unit) : amount($min, $unit) . ' to ' . amount($max, $unit);
			$range .= " [$unit{$unit}]" if $unit ne 'NONE';
			$default = amount($default, $unit);
		} elsif ($kind eq 'REAL_SETTING') { $range = "$rest[0] to $rest[1]" }
		elsif ($kind eq 'BOOL_SETTING') { $default = $default eq 'true' ? 'on' : 'off' }
		elsif ($kind eq 'ENUM_SETTING') {
			my @labels = @{ $options{ $rest[0] } };
			$range = 'one of ' . join ', ', @labels;
			($default) = grep { uc $rest[0] =~ s/_options$//r . "_$_" eq $default } @labels or die "tacho.$name: default $default\n";
		}
		my $given = join '; ', grep { $_ ne '' } $range, $default eq '' ? '' : "default $default", 'change: ' . $change{ $rest[-1] };
		push @rows, "## `tacho.$name`\n\n" . ucfirst("$given.") . "\n\n" . "$short $long" =~ s/\*/\\*/gr . "\n";
	}
	$pages{'settings.md'} = "$made# Settings\n\n\"reload\" means that `pg_reload_conf()` is enough; \"restart\" needs a restart of the server. The unit in\n"
		. "brackets is the unit of a number that is written without one. The values in use:\n\n"
		. "```sql\nSELECT name, setting, unit, source FROM pg_settings WHERE name LIKE 'tacho.%';\n```\n\n" . join "\n", @rows;
}

sub counters {
	my $text = content('extension/sql/statements.sql');
	my ($comment) = $text =~ /^comment on view tacho\.statements is\n'(.*?)';$/ms;
	my $page = "$made# Counters of statements\n\nThe counters of `tacho.statements` and of the history of statements, in their order there. \"Stored\" is \"sum\" if\n"
		. "the history keeps the increase of each interval; extremes are in `tacho.statements` only.\n"
		. "[statements.md](../statements.md) says how they are measured, [functions/statements.md](functions/statements.md) lists all columns.\n\n"
		. table('Counter', 'Unit', 'Stored', 'Since', 'Counts');
	foreach (@counters) {
		my (undef, undef, $name, undef, $unit, $kind, undef, $since) = @$_;
		my %stored = (SUM => 'sum', MIN => 'no', MAX => 'no', SQUARE => 'sum', HISTOGRAM => '24 sums', LONG => '12 sums');
		$page .= row(code($name), $unit eq 'one' ? '' : $unit, $stored{$kind}, $since == 15 ? '' : "PostgreSQL $since", $counter{$name}[1]);
	}
	$pages{'counters.md'} = $page;
}

sub history {
	my $page = "$made# Tables of the history\n\nThe tables and columns that a history keeps. `tacho export` writes them as CSV, where a reference is resolved\n"
		. "into the columns of its table. [format.md](../format.md) describes the bytes, [metrics.md](metrics.md) the measurements\n"
		. "of the server, [counters.md](counters.md) the counters of `statement_stats`.\n";
	my %type = (UINT => 'number', INT => 'number', TIME => 'time', TIME_US => 'time', NAME => 'text', BYTES => 'text', SPAN => 'time span');
	my %measured = map { $_->[1] => 1 } grep { $_->[0] eq 'COLUMN' and $_->[6] =~ /^(COUNTER|GAUGE)$/ } @samples;
	foreach (@samples) {
		my ($kind, @fields) = @$_;
		next if $measured{ $fields[$kind eq 'TABLE' ? 1 : 0] };
		if ($kind eq 'TABLE') { $page .= "\n## $fields[1]\n\n" . sentence($fields[2]) . "\n\n" . table('Column', 'Type', 'Is') }
		elsif ($kind eq 'COLUMN') {
			my (undef, undef, $name, $type, $target, $role, $text) = @fields;
			my $shown = $type eq 'ENUM' ? "one of [$target](#labels)" : $type eq 'REF' ? "row of [$target](#$target)" : $type{$type} // die "type $type\n";
			$page .= row(code($name), $shown . ($target eq 'blocks' ? ', blocks' : $role eq 'DIM' ? '; dimension' : ''), $text);
		}
	}
	my (%labels, @order);
	foreach (grep { $_->[0] eq 'LABEL' } @samples) { push @order, $_->[1] unless $labels{ $_->[1] }; push @{ $labels{ $_->[1] } }, $_->[3] }
	$page .= "\n## Labels\n\n" . table('Enumeration', 'Values') . join '', map { row($_, join ', ', code(@{ $labels{$_} })) } @order;
	$pages{'history.md'} = $page;
}

# Metrics that web/src/metrics.rs registers: [name, type, help].
sub registered {
	my $text = content('web/src/metrics.rs') =~ s/#\[cfg\(test\)\].*//sr;
	my (@found, $help);
	$text =~ s/\s+/ /g;
	while ($text =~ /let help = "([^"]*)"|page\.(add|add_in|counts|levels)\( ?\(? ?"(\w+)", (?:"([^"]*)"|help), ([^)]*)/g) {
		if (defined $1) { $help = $1; next }
		my ($how, $name, $about, $rest) = ($2, $3, $4 // $help, $5);
		my $variable = $rest =~ /(\w+),? ?$/ ? $1 : 'another';
		my $type = $how eq 'counts' ? 'counter' : $how eq 'levels' || $text =~ /let $variable = Level::default/ ? 'gauge' : 'counter';
		my $unit = $rest =~ /Unit::Seconds|^times\(/ ? '_seconds' : $rest =~ /Unit::Bytes|^bytes\(/ ? '_bytes' : '';
		push @found, [ "tacho_$name$unit" . ($type eq 'counter' ? '_total' : ''), $type, $about ];
	}
	return @found;
}

# The metric of a measurement: as shown() in web/src/metrics.rs names it.
sub measured {
	my ($table, $name, $unit, $role) = @_;
	my $kind = $table =~ s/^server_//r;
	$name =~ s/^${kind}_?//;
	$name =~ s/_bytes$//;
	my $suffix = $unit =~ /^(ms|us)$/ ? '_seconds' : $unit eq 'bytes' ? '_bytes' : '';
	return "tacho_${kind}_$name$suffix" . ($role eq 'COUNTER' ? '_total' : '');
}

sub metrics {
	my $page = "$made# Metrics\n\nThe metrics of `tacho web` (`/metrics`) and `tacho metrics`. [metrics.md](../metrics.md) says what counts and which\n"
		. "labels there are. A counter of the history covers the day (UTC).\n\n## Load, recorder and tacho web\n\n" . table('Metric', 'Type', 'Is');
	$page .= row(code($_->[0]), @$_[ 1, 2 ]) foreach registered();
	my $table = '';
	foreach (grep { $_->[0] eq 'COLUMN' and $_->[6] =~ /^(COUNTER|GAUGE)$/ } @samples) {
		my (undef, $of, undef, $name, undef, $unit, $role, $text) = @$_;
		my %label = (server_database => 'database', server_replica => 'replica', server_slot => 'slot', server_io => 'io', server_disk => 'disk');
		if ($table ne $of) {
			my ($about) = map { $_->[3] } grep { $_->[0] eq 'TABLE' and $_->[2] eq $of } @samples;
			$page .= "\n## " . ucfirst($about =~ s/[;:].*//r) . "\n\n" . ($label{$of} ? "Label: `$label{$of}`.\n\n" : '') . table('Metric', 'Type', 'In `server_history`', 'Is');
			$table = $of;
		}
		$page .= row(code(measured($of, $name, $unit, $role)), lc $role, "`$name`, $unit", $text);
	}
	$pages{'metrics.md'} = $page;
}

# Help of a program and of each of its commands.
sub help_of {
	my (@command) = @_;
	open my $pipe, '-|', 'sh', '-c', 'COLUMNS=100 exec "$0" "$@" --help 2>&1', "$programs/" . shift(@command), @command or die $!;
	local $/;
	my $text = <$pipe>;
	close $pipe or die "@command --help: exit code $?\n$text";
	return $text =~ s/[ \t]+$//gmr =~ s/\n+\z/\n/r;
}

sub commands {
	my $first = help_of('tacho');
	my ($list) = $first =~ /^Commands:\n(.*?)\n\n/ms or die "tacho --help lists no commands\n";
	my ($beside) = $first =~ /^Programs beside this one.*?:\n(.*)/ms or die "tacho --help lists no programs\n";
	my @beside = grep { $_ !~ /^(?:fleet|bench)$/ } $beside =~ /^  ([a-z][\w-]*)/gm;
	my $page = "$made# Commands\n\nThe help of every command. The manual pages (`man tacho-top`) and the completions of shells are made from the\n"
		. "same text: `tacho generate DIR`. [`tacho fleet`](../../fleet.md) and [`tacho bench`](../../bench/README.md) are installed by themselves.\n\n"
		. table('Command', 'Does');
	foreach my $name ($list =~ /^  ([a-z][\w-]*)/gm, @beside) {
		my $help = (grep { $_ eq $name } @beside) ? help_of("tacho-$name") : help_of('tacho', $name);
		my ($about) = $help =~ /^(.+)$/m;
		$page .= row("[`tacho $name`]($name.md)", $about);
		$pages{"commands/$name.md"} = "$made# tacho $name\n\n```text\n$help```\n";
	}
	$pages{'commands/README.md'} = $page;
}

if ($programs) { commands() }
else { functions(); settings(); counters(); history(); metrics() }

my @stale;
foreach my $name (sort keys %pages) {
	my $file = "docs/reference/$name";
	next if -e $file and content($file) eq $pages{$name};
	push @stale, $file;
	next if $check;
	make_path(dirname($file));
	open my $out, '>', $file or die "$file: $!\n";
	print $out $pages{$name};
	close $out or die "$file: $!\n";
}
# pages of functions or commands that are gone
foreach my $file (glob($programs ? 'docs/reference/commands/*.md' : 'docs/reference/functions/*.md')) {
	next if $pages{ $file =~ s{^docs/reference/}{}r };
	push @stale, $file;
	unlink $file unless $check;
}
exit 0 unless $check and @stale;
print "$_ is out of date: run tools/make-reference.pl" . ($programs ? ' --programs DIR' : '') . "\n" foreach @stale;
exit 1;
