# expand.awk - makes a script of the extension from its parts
#
# usage: awk -f expand.awk ../catalog/samples.h ../catalog/counters.h ../catalog/derived.h
#            sql/PART.sql... >tacho--0.2.sql
# The Makefile knows the parts, and owner.sql explains them.
#
# Every dimension is a filter of every reader function. Dimensions are the
# columns marked DIM in catalog/samples.h, in their order there, then those
# of catalog/derived.h. Three markers stand for them:
#
#   /* FILTERS */   a line of its own: one argument a line, indented like it
#   /* FILTERS OF function */  the same: hands on the filters of that function
#   {DIMENSIONS}    anywhere: their names, separated by commas
#
# The counters of catalog/counters.h are columns of tacho.statements, in their
# order there, as counters.c fills them:
#
#   /* COUNTERS */  a line of its own: one column a line, indented like it
#   /* SUMS */      the same for tacho.statements_history: sums only, exact
#
# A function of SQL around one of C has the columns of that one:
#
#   /* COLUMNS OF function */  a line of its own: the columns that this function, which
#                   stands before it, returns
#
# So a new dimension or counter needs no edit in the scripts. Text outside ASCII is refused:
# the script must load in a database of any encoding.

function fail(message) {
	print FILENAME ": " message > "/dev/stderr"
	failed = 1
	exit 1
}

# The columns of a counter, by its kind.
function counter_columns(name, type, kind) {
	if (kind == "SQUARE") {
		sub(/^square_/, "", name)
		counter[++counters] = "mean_" name " double precision"
		counter[++counters] = "stddev_" name " double precision"
	} else if (kind == "HISTOGRAM") {
		counter[++counters] = "p50_exec_time double precision"
		counter[++counters] = "p95_exec_time double precision"
		counter[++counters] = "p99_exec_time double precision"
		counter[++counters] = name " bigint[]"
	} else if (kind != "LONG")
		counter[++counters] = name (type == "double" ? " double precision" : " bigint")
	if (kind == "SUM")
		sum[++sums] = name (type == "double" ? " numeric" : " bigint")
}

# catalog: COLUMN(table, id, name, type, target, DIM, "doc")
#          DERIVED(name, "doc")
#          COUNTER(id, name, ctype, unit, kind, group, since, "doc")
FILENAME ~ /\.h$/ {
	split($0, field, /[(,][ ]*/)
	if ($0 ~ /^COLUMN\(/ && field[7] == "DIM")
		dimension[++n] = field[4]
	if ($0 ~ /^DERIVED\(/)
		dimension[++n] = field[2]
	if ($0 ~ /^COUNTER\(/)
		counter_columns(field[3], field[4], field[6])
	next
}

!scripts {
	scripts = 1
	if (n == 0 || counters == 0)
		fail("found no dimension or no counter in the catalog")
	for (i = 1; i <= n; i++)
		list = list (i > 1 ? ", " : "") dimension[i]
}

FNR == 1 && parts++ {
	print "\n"
}

/[^ -~\t]/ {
	fail("line " FNR ": not ASCII")
}

/^[ \t]*\/\* FILTERS \*\/[ \t]*$/ {
	indent = $0
	sub(/\/\*.*/, "", indent)
	for (i = 1; i <= n; i++)
		print indent dimension[i] " text default null,"
	next
}

/^[ \t]*\/\* FILTERS OF [a-z_]+ \*\/[ \t]*$/ {
	indent = $0
	sub(/\/\*.*/, "", indent)
	for (i = 1; i <= n; i++)
		print indent dimension[i] " => " $4 "." dimension[i] ","
	next
}

/^[ \t]*\/\* COUNTERS \*\/[ \t]*$/ {
	indent = $0
	sub(/\/\*.*/, "", indent)
	for (i = 1; i <= counters; i++)
		print indent counter[i] ","
	next
}

/^[ \t]*\/\* SUMS \*\/[ \t]*$/ {
	indent = $0
	sub(/\/\*.*/, "", indent)
	for (i = 1; i <= sums; i++)
		print indent sum[i] (i < sums ? "," : "")
	next
}

/^create function tacho\./ {
	name = $3
	gsub(/^tacho\.|\(.*/, "", name)
}

/^\)/ {
	is_column = 0
}

/^[ \t]*\/\* COLUMNS OF [a-z_]+ \*\/[ \t]*$/ {
	if (!($4 in columns))
		fail("no function " $4 " stands before line " FNR)
	printf "%s", columns[$4]
	next
}

is_column {
	columns[name] = columns[name] $0 "\n"
}

/^returns table \($/ {
	is_column = 1
}

{
	gsub(/\{DIMENSIONS\}/, list)
	print
}

END {
	if (!failed && !scripts)
		fail("there is nothing to expand")
}
