# SQL answers the cases of conformance/ to the last digit, and has the columns
# of the command line.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

my $data = "$FindBin::RealBin/../../../conformance";
my $json = JSON::PP->new->utf8;
my $node = tacho_cluster('conformance', start => 0,
	conf => "tacho.retention_age = 0\n");
my $tape = $node->data_dir . '/tacho';

# Numbers become strings: 1.5000 is not 1.5 here.
sub exact_json
{
	my ($text) = @_;

	$text =~ s/("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?)/defined $1 ? $1 : qq("$2")/ge;
	return $json->decode($text);
}

# The members of a document that also the expected document has.
sub expected_part
{
	my ($got, $expected) = @_;

	return { map { $_ => expected_part($got->{$_}, $expected->{$_}) } keys %$expected }
	  if ref $expected eq 'HASH' && ref $got eq 'HASH';
	return [ map { expected_part($got->[$_], $expected->[$_]) } 0 .. $#$got ]
	  if ref $expected eq 'ARRAY' && ref $got eq 'ARRAY';
	return $got;
}

my %file = map { m{([^/]+)\.json$} ? ($1 => exact_json(slurp_file($_))) : () }
  glob "$data/cases/*.json";
ok(scalar(keys %file), 'conformance/ has cases');

# Every input is a node, imported before the server starts.
for my $name (sort keys %file)
{
	my %with = %{ $file{$name}{with} // {} };

	system_or_bail($ENV{TACHO_PROGRAM}, 'import', 'sessions',
		"$data/inputs/$file{$name}{input}",
		(map { "--with=$_=$data/inputs/$with{$_}" } sort keys %with),
		'--tape', $tape, '--node', $file{$name}{node});
}
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');

# function -> column -> type, and the columns in order
my (%type, %columns);
for my $line (split /\n/, $node->safe_psql('postgres', q{
SELECT proname, name, type::regtype
  FROM pg_proc, unnest(proallargtypes, proargmodes, proargnames) WITH ORDINALITY AS a (type, mode, name, n)
 WHERE pronamespace = 'tacho'::regnamespace AND mode = 't' AND prosrc IN ('tacho_reader', 'tacho_status')
 ORDER BY proname, n}))
{
	my ($function, $column, $type) = split /\|/, $line;

	$function =~ s/^_//;	# read by an SQL function of that name

	$type{$function}{$column} = $type;
	push @{ $columns{$function} }, $column;
}

sub literal
{
	my ($value) = @_;

	return 'NULL' unless defined $value;
	return $value ? 'true' : 'false' if JSON::PP::is_bool($value);
	return "'" . ($value =~ s/'/''/gr) . "'";
}

sub call_of
{
	my ($case, $default_node) = @_;
	my %arguments = (node => $default_node, %{ $case->{arguments} });

	return "tacho.$case->{function}("
	  . join(', ', map { "$_ => " . literal($arguments{$_}) } sort keys %arguments)
	  . ')';
}

# A time without needless zeros
sub short_time
{
	my ($time) = @_;
	return undef unless defined $time;
	return $time =~ s/\.(\d*?)0*Z$/length $1 ? ".$1Z" : 'Z'/er;
}

sub psql_of
{
	my ($case, $sql) = @_;
	my $zone = $case->{zone} // 'UTC';
	my ($stdout, $stderr);

	$node->psql('postgres', "\\set VERBOSITY verbose\nSET client_encoding = 'UTF8';\nSET TimeZone = '$zone';\n$sql;",
		stdout => \$stdout, stderr => \$stderr);
	return ($stdout, $stderr);
}

# The rows of a call, with the columns that each expected row has.
sub rows_of
{
	my ($case, $call) = @_;
	my $function = $case->{function};
	my @columns = @{ $columns{$function} };
	my @fields = map {
		$type{$function}{$_} eq 'timestamp with time zone'
		  ? qq{to_char(r."$_" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')}
		  : qq{r."$_"::text}
	} @columns;
	my ($stdout, $stderr) = psql_of($case,
		'SELECT json_build_array(' . join(', ', @fields) . ") FROM $call r");
	my @rows;

	diag($stderr) if $stderr;
	for my $line (split /\n/, $stdout)
	{
		my %row;
		@row{@columns} = @{ $json->decode($line) };
		my $expected = $case->{rows}[ scalar @rows ] // \%row;
		for my $column (grep { ref $expected->{$_} } keys %$expected)
		{
			$row{$column} = expected_part(exact_json($row{$column}), $expected->{$column});
		}
		push @rows, { map { $_ => $row{$_} } grep { exists $expected->{$_} } @columns };
	}
	return normalized($function, \@rows);
}

sub normalized
{
	my ($function, $rows) = @_;

	return [
		map {
			my $row = $_;
			+{
				map {
					$_ => ($type{$function}{$_} // '') eq 'timestamp with time zone'
					  ? short_time($row->{$_})
					  : $row->{$_}
				} keys %$row
			}
		} @$rows
	];
}

# The parts of an error that the case names
sub error_of
{
	my ($case, $call) = @_;
	my ($stdout, $stderr) = psql_of($case, "SELECT * FROM $call");
	my %error;

	@error{qw(sqlstate message)} = $stderr =~ /ERROR:  (\w{5}): (.*)$/m;
	($error{detail}) = $stderr =~ /^DETAIL:  (.*)$/m;
	($error{hint}) = $stderr =~ /^HINT:  (.*)$/m;
	return { map { $_ => $error{$_} } keys %{ $case->{error} } };
}

for my $name (sort keys %file)
{
	for my $case (@{ $file{$name}{cases} })
	{
		my $call = call_of($case, $file{$name}{node});
		my ($got, $expected) = $case->{error}
		  ? (error_of($case, $call), $case->{error})
		  : (rows_of($case, $call), normalized($case->{function}, $case->{rows}));

		is_deeply($got, $expected, "$name: $case->{name}") or diag($call);
	}
}

# The columns of the program, in order
for my $function (sort keys %columns)
{
	my ($line) = split /\n/, (run_command([
		$ENV{TACHO_PROGRAM}, 'query', $function, "--tape=$tape",
		'--format=copy', '--node=all',
		$function eq 'top' ? '--dimension=pid' : (),
		$function eq 'explain' ? '--function=top' : () ]))[0];
	is_deeply([ split /\t/, $line ], $columns{$function},
		"$function() has the columns of its cases");
}

$node->stop;
done_testing();
