# Random queries whose constants are marked, and the search for a mark in bytes.
#
# A mark is a text, an int or a bigint with at least seven fixed bytes or digits. So no
# other number is a mark by chance. A bigint is also found in its binary form.
package TachoMarks;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(marked_schema marked_query marks_in marks_in_text marked_number);

# The bytes "LEAKMA", then two bytes that count.
my $first_wide = 0x4C45414B << 32 | 0x4D410101;
my $wide = substr $first_wide, 0, 14;
my $marks = 0;

# Marked values as SQL writes them, and a text without its quotes. The server's query
# jumbling does not find the values of kept(), so texts of statements keep them.
sub text { return sprintf "'leak%09dx'", ++$marks }
sub bare { return sprintf 'leak%09dx', ++$marks }
sub number { return 1_771_171_000 + ++$marks % 1000 }
sub kept { return sprintf "'kept%09dx'", ++$marks }
sub wide { return $first_wide + ++$marks % 60_000 }
sub texts { return join ', ', map { text() } 0 .. rand 5 }
sub numbers { return join ', ', map { number() } 0 .. rand 5 }
sub one_of { return $_[ int rand @_ ] }

sub marked_number { return number() }

# The marks in the bytes of a file, each once. `texts`: they hold texts of statements.
sub marks_in
{
	my ($bytes, $texts) = @_;
	my %found = map { $_ => 1 } grep { !($texts && /^kept/) } $bytes =~ /((?:leak|kept)\d{9}x|1771171\d{3}|$wide\d{5}|AMKAEL)/g;

	return sort keys %found;
}

# The marks in a text that has other numbers, such as ids of queries.
sub marks_in_text
{
	my ($text) = @_;
	my %found = map { $_ => 1 } $text =~ /(leak\d{9}x|(?<!\d)1771171\d{3}(?!\d)|(?<!\d)$wide\d{5}(?!\d))/g;

	return sort keys %found;
}

# Tables with marks in each place of a definition: bounds, checks, defaults, policies,
# predicates, expressions, rules, triggers, functions, views.
sub marked_schema
{
	my ($major) = @_;
	my $bound = number();
	my $virtual = $major >= 18 ? ', computed text GENERATED ALWAYS AS (b || ' . text() . ') VIRTUAL' : '';

	return <<"END";
CREATE ROLE reader;
CREATE TYPE kinds AS ENUM ('leak000000001x', 'leak000000002x', 'leak000000003x');
CREATE DOMAIN checked AS int CHECK (VALUE <> 5 - @{[number()]});
CREATE TABLE plain (id int PRIMARY KEY, a int DEFAULT @{[number()]}, b text DEFAULT @{[text()]}, c timestamptz DEFAULT now(),
	d jsonb, e int[], f date, g bigint, h kinds, i int4range, made text GENERATED ALWAYS AS (b || @{[text()]}) STORED$virtual,
	CHECK (a <> @{[number()]} OR b <> @{[text()]}));
CREATE INDEX partial ON plain (a) WHERE b <> @{[text()]} AND a < @{[number()]};
CREATE INDEX wide ON plain (g) WHERE g < @{[wide()]};
CREATE INDEX by_expression ON plain ((b || @{[text()]}));
CREATE STATISTICS by_statistics ON (b || @{[text()]}), (a - @{[number()]}) FROM plain;
CREATE TABLE heir (CHECK (g <> @{[wide()]})) INHERITS (plain);
CREATE TABLE parts (id int, k text) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (@{[text()]}, 'x');
CREATE TABLE parts_2 PARTITION OF parts DEFAULT;
CREATE TABLE ranges (id int, n int) PARTITION BY RANGE (n);
CREATE TABLE ranges_1 PARTITION OF ranges FOR VALUES FROM (0) TO ($bound);
CREATE TABLE ranges_2 PARTITION OF ranges FOR VALUES FROM ($bound) TO (2000000000);
CREATE TABLE guarded (id int, b text);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded TO reader USING (b <> @{[text()]} AND id < 1 + @{[number()]}) WITH CHECK (b <> @{[text()]});
CREATE FUNCTION with_value(x int, y text DEFAULT @{[text()]}) RETURNS int LANGUAGE sql STABLE AS 'SELECT \$1 + @{[number()]}';
CREATE TABLE watched (id int, b text);
CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM 1 FROM parts WHERE k = ''@{[bare()]}''; RETURN new; END';
CREATE TRIGGER changed BEFORE UPDATE ON watched FOR EACH ROW WHEN (new.b <> @{[text()]}) EXECUTE FUNCTION on_change();
CREATE RULE copied AS ON DELETE TO watched WHERE old.b <> @{[text()]} DO ALSO UPDATE watched SET b = @{[text()]} WHERE id = @{[number()]};
CREATE VIEW seen AS SELECT * FROM plain WHERE b NOT LIKE @{[text()]};
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM plain WHERE a <> @{[number()]};
CREATE VIEW option AS SELECT id, b FROM watched WHERE b <> @{[text()]} WITH CHECK OPTION;
GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
INSERT INTO plain (id, a, b, d, e, f, g, h, i) SELECT n, n % 50, 'v' || n, jsonb_build_object('k', n), ARRAY[n, n], current_date, n, 'leak000000001x', int4range(n, n + 5) FROM generate_series(1, 500) n;
INSERT INTO parts SELECT n, 'x' FROM generate_series(1, 50) n;
INSERT INTO ranges SELECT n, n FROM generate_series(1, 50) n;
INSERT INTO guarded SELECT n, 'g' FROM generate_series(1, 50) n;
INSERT INTO watched SELECT n, 'w' FROM generate_series(1, 50) n;
ANALYZE;
END
}

# Conditions about the columns of plain, as t.
my @conditions = (
	sub { 't.a = ' . number() }, sub { 't.b = ' . text() }, sub { 't.g = ' . wide() },
	sub { 't.g BETWEEN ' . wide() . ' AND ' . wide() }, sub { 't.g IN (' . wide() . ', ' . wide() . ')' },
	sub { 't.a IN (' . numbers() . ')' }, sub { 't.a NOT IN (' . numbers() . ')' },
	sub { 't.b = ANY (ARRAY[' . texts() . '])' }, sub { 't.a <> ALL (ARRAY[' . numbers() . '])' },
	sub { "t.b = ANY ('{" . bare() . ',' . bare() . "}'::text[])" },
	sub { 't.a = ANY (VALUES (' . number() . '), (' . number() . '))' },
	sub { 't.b LIKE ' . text() }, sub { 't.b NOT ILIKE ' . text() }, sub { 't.b LIKE ' . text() . q{ ESCAPE '#'} },
	sub { 't.b ~ ' . text() }, sub { 't.b !~* ' . text() }, sub { 't.b SIMILAR TO ' . text() },
	sub { 'starts_with(t.b, ' . text() . ')' }, sub { 'regexp_replace(t.b, ' . text() . ', ' . text() . ') <> t.b' },
	sub { 't.a BETWEEN ' . number() . ' AND ' . number() }, sub { 't.a NOT BETWEEN SYMMETRIC ' . number() . ' AND ' . number() },
	sub { '(t.a, t.b) < (' . number() . ', ' . text() . ')' }, sub { 'ROW(t.a, t.b) = ROW(' . number() . ', ' . text() . ')' },
	sub { 'coalesce(t.b, ' . text() . ') <> ' . text() }, sub { 'nullif(t.a, ' . number() . ') IS NOT NULL' },
	sub { 'greatest(t.a, ' . number() . ') > least(' . number() . ', t.id)' },
	sub { 'CASE WHEN t.a = ' . number() . ' THEN t.b = ' . text() . ' ELSE t.id > ' . number() . ' END' },
	sub { 'CASE t.a WHEN ' . number() . ' THEN ' . text() . ' ELSE t.b END = ' . text() },
	sub { 't.b || ' . text() . ' <> ' . text() }, sub { 'substr(t.b, ' . number() . ') = ' . text() },
	sub { 'substring(t.b FROM ' . text() . ') IS NULL' }, sub { 'trim(BOTH ' . text() . ' FROM t.b) <> ' . text() },
	sub { 'position(' . text() . ' IN t.b) > ' . number() }, sub { 'overlay(t.b PLACING ' . text() . ' FROM 1) <> ' . text() },
	sub { 'normalize(t.b, NFC) = normalize(' . text() . ', NFKD)' }, sub { '(t.b || ' . text() . ') IS NFC NORMALIZED' },
	sub { 'format(' . text() . ', t.b) = concat_ws(' . text() . ', t.b, ' . text() . ')' },
	sub { 't.d @> jsonb_build_object(' . text() . ', ' . number() . ')' }, sub { 't.d @> \'{"k": ' . number() . '}\'' },
	sub { 't.d ->> ' . text() . ' = ' . text() }, sub { 't.d #>> ARRAY[' . text() . '] IS NULL' },
	sub { 't.d[' . text() . '] IS NULL' }, sub { 't.d ? ' . text() }, sub { 't.d ?| ARRAY[' . texts() . ']' },
	sub { 'jsonb_path_exists(t.d, \'$.' . bare() . ' ? (@ > ' . number() . ')\')' },
	sub { 't.d @? \'$.k ? (@ == "' . bare() . '")\'' }, sub { 't.d @@ \'$.k == ' . wide() . '\'' },
	sub { 'jsonb_set(t.d, ARRAY[' . text() . '], to_jsonb(' . text() . '::text)) <> t.d' },
	sub { 't.c > now() - interval \'' . number() . ' seconds\'' },
	sub { 't.c < timestamptz \'2026-01-01\' + ' . number() . ' * interval \'1 second\'' },
	sub { 't.c > now() - make_interval(secs => ' . number() . ')' },
	sub { 'extract(epoch FROM t.c) > ' . number() }, sub { 'extract(year FROM t.f) <> ' . number() },
	sub { 'date_trunc(\'day\', t.c) < to_timestamp(' . number() . ')' },
	sub { 't.f - date \'2026-01-01\' > ' . number() },
	sub { 'to_char(t.c, ' . text() . ') <> ' . text() },
	sub { '(t.c, t.c) OVERLAPS (now(), make_interval(secs => ' . number() . '))' },
	sub { 't.e @> ARRAY[' . numbers() . ']' }, sub { 't.e[1] = ' . number() }, sub { number() . ' = ANY (t.e)' },
	sub { 't.e[' . number() . ':' . number() . '] = ARRAY[[' . number() . '], [' . number() . ']]' },
	sub { 'array_position(t.e, ' . number() . ') IS NULL' },
	sub { 't.i @> ' . number() }, sub { 't.i && int4range(' . number() . ', NULL)' }, sub { 't.i < \'[' . number() . ',)\'' },
	sub { 't.h = \'leak00000000' . one_of(1 .. 3) . 'x\'' }, sub { 't.h::text = ' . text() },
	sub { 't.a::text = ' . text() }, sub { 't.b::varchar(30) = ' . text() }, sub { 't.b < ' . text() . '::name' },
	sub { 't.a::numeric(20, 3) = ' . number() . '.5' }, sub { 't.a < -' . number() . '::float8' }, sub { 't.a = (\'' . number() . '\')::int' },
	sub { number() . '::checked > t.a' }, sub { 't.a IS DISTINCT FROM ' . number() }, sub { '(t.a > ' . number() . ') IS NOT TRUE' },
	sub { 'with_value(t.a) > ' . number() }, sub { 'with_value(x => t.a, y => ' . text() . ') > ' . number() },
	sub { 'to_tsvector(\'simple\', t.b) @@ to_tsquery(\'simple\', ' . text() . ')' },
	sub { 't.b COLLATE "C" > ' . text() }, sub { 'xmlexists(\'/' . bare() . '\' PASSING xml \'<a/>\')' },
	sub { 'xmlserialize(CONTENT xmlelement(NAME a, xmlattributes(' . text() . ' AS b), t.b) AS text) <> ' . text() },
	sub { 'xmlconcat(xmlforest(' . text() . ' AS b), xmlparse(CONTENT ' . text() . '))::text <> t.b' },
	sub { 'NOT (t.a = ' . number() . ' OR t.b = ' . text() . ')' },
	sub { 't.a IN (SELECT id FROM parts WHERE k <> ' . text() . ')' },
	sub { '(t.a, ' . text() . ') NOT IN (SELECT id, k FROM parts)' },
	sub { 'EXISTS (SELECT 1 FROM ranges r WHERE r.n = t.a AND r.n < ' . number() . ')' },
	sub { 't.a > (SELECT max(n) - ' . number() . ' FROM ranges)' }, sub { 't.a > ALL (SELECT n + ' . number() . ' FROM ranges WHERE n < t.a)' },
	sub { 'ARRAY(SELECT n FROM ranges WHERE n > ' . number() . ') = ARRAY[' . numbers() . ']' },
	sub { 't.made <> ' . text() },
	sub { 'width_bucket(t.a, ARRAY[1, ' . number() . ']) > ' . number() },
);
my @conditions_of_16 = (
	sub { 't.b IS NOT JSON OR t.b = ' . text() },
	sub { 'json_object(' . text() . ': t.a, ' . text() . ': ' . number() . ')::text <> ' . text() },
	sub { 'json_array(t.a, ' . text() . ')::text <> ' . text() },
);
my @conditions_of_17 = (
	sub { 'json_exists(t.d, \'$.' . bare() . ' ? (@ > $x)\' PASSING ' . number() . ' AS x)' },
	sub { 'json_value(t.d, \'$.k\' RETURNING text DEFAULT ' . text() . ' ON EMPTY DEFAULT ' . text() . ' ON ERROR) = ' . text() },
	sub { 'json_query(t.d, \'$.' . bare() . '\' WITH WRAPPER) IS NULL' },
	sub { 'json_scalar(t.a)::text = ' . text() },
);

sub condition
{
	my ($major) = @_;
	my @all = (@conditions, $major >= 16 ? @conditions_of_16 : (), $major >= 17 ? @conditions_of_17 : ());

	return join one_of(' AND ', ' OR '), map { one_of(@all)->() } 0 .. rand 3;
}

# Statements; their argument makes a condition.
my @statements = (
	sub { 'SELECT * FROM plain t WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM ONLY plain t WHERE ' . $_[0]->() . ' LIMIT ' . number() . ' OFFSET ' . number() },
	sub { 'SELECT * FROM seen t WHERE ' . $_[0]->() . ' ORDER BY b || ' . text() . ' LIMIT (SELECT ' . wide() . ')' },
	sub { 'SELECT * FROM barrier t WHERE ' . $_[0]->() . ' ORDER BY a FETCH FIRST ' . number() . ' ROWS WITH TIES' },
	sub { 'SELECT * FROM plain t WHERE ctid > \'(0,1)\' AND b <> ' . text() . ' AND (' . $_[0]->() . ')' },
	sub { 'SELECT DISTINCT ON (b || ' . text() . ') a + ' . number() . ', ' . text() . ' FROM plain t WHERE ' . $_[0]->() },
	sub { 'SELECT a FROM plain t WHERE ' . $_[0]->() . ' FOR UPDATE' },
	sub { 'SELECT count(*) FILTER (WHERE ' . $_[0]->() . '), string_agg(b, ' . text() . ') FROM plain t GROUP BY a + ' . number() . ' HAVING count(*) > ' . number() },
	sub { 'SELECT count(*) FROM plain t WHERE ' . $_[0]->() . ' GROUP BY GROUPING SETS ((a), (b || ' . text() . '), ROLLUP (f, (g - ' . wide() . ')), CUBE (f, (id % ' . number() . ')))' },
	sub { 'SELECT percentile_cont(ARRAY[0.1, 0.' . number() . ']) WITHIN GROUP (ORDER BY a + ' . number() . '), string_agg(b, \',\' ORDER BY b || ' . text() . ') FROM plain t WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM plain t JOIN parts p ON p.id = t.id AND p.k <> ' . text() . ' WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM plain t LEFT JOIN ranges r ON r.n = t.a + ' . number() . ' WHERE r.n IS NULL OR ' . $_[0]->() },
	sub { 'SELECT * FROM ranges r FULL JOIN parts p ON r.n + ' . number() . ' = p.id + ' . number() . ' WHERE r.n > ' . number() . ' OR p.k <> ' . text() },
	sub { 'SELECT * FROM ranges r, LATERAL (SELECT * FROM plain t WHERE t.id = r.n AND (' . $_[0]->() . ') LIMIT ' . number() . ') l WHERE l.b <> ' . text() },
	sub { 'SELECT * FROM parts WHERE k = ' . text() }, sub { 'SELECT * FROM ranges WHERE n > ' . number() },
	sub { 'SELECT id, k FROM parts WHERE k IN (' . texts() . ') UNION ALL SELECT n, ' . text() . ' FROM ranges WHERE n < ' . number() },
	sub { 'WITH x AS MATERIALIZED (SELECT * FROM plain t WHERE ' . $_[0]->() . ') SELECT * FROM x WHERE b <> ' . text() },
	sub { 'WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 3 AND n <> ' . number() . ') CYCLE n SET c TO ' . kept() . ' DEFAULT ' . kept() . ' USING p SELECT * FROM s WHERE n <> ' . number() },
	sub { 'SELECT * FROM (VALUES (' . number() . ', ' . text() . '), (' . number() . ', ' . text() . ')) v (x, y) WHERE y <> ' . text() },
	sub { 'SELECT * FROM generate_series(' . number() . ', ' . number() . ') g WHERE g <> ' . number() },
	sub { 'SELECT * FROM ROWS FROM (generate_series(' . wide() . ', ' . wide() . ', ' . wide() . '), unnest(ARRAY[' . texts() . '])) WITH ORDINALITY o (x, y, z) WHERE x <> ' . wide() },
	sub { 'SELECT sum(a) OVER (PARTITION BY b || ' . text() . ' ORDER BY a ROWS BETWEEN ' . number() . ' PRECEDING AND CURRENT ROW) FROM plain t WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM (SELECT lag(a, 1, ' . number() . ') OVER w, row_number() OVER w AS r, sum(a) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND ' . number() . ' FOLLOWING) FROM plain t WHERE ' . $_[0]->() . ' WINDOW w AS (ORDER BY b || ' . text() . ' GROUPS ' . number() . ' PRECEDING)) s WHERE r < ' . number() },
	sub { 'SELECT nth_value(b, ' . number() . ') OVER (ORDER BY c RANGE make_interval(secs => ' . number() . ') PRECEDING EXCLUDE TIES), ntile(' . number() . ') OVER (ORDER BY a) FROM plain t WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM plain t TABLESAMPLE system (50) REPEATABLE (' . number() . ') WHERE ' . $_[0]->() },
	sub { 'SELECT * FROM plain t TABLESAMPLE bernoulli (9.' . number() . ') REPEATABLE (' . number() . ') WHERE ' . $_[0]->() },
	sub { 'SELECT a FROM plain t WHERE ' . $_[0]->() . ' UNION SELECT ' . number() . ' EXCEPT SELECT n FROM ranges WHERE n = ' . number() },
	sub { 'SELECT b FROM plain t WHERE ' . $_[0]->() . ' INTERSECT ALL (SELECT k FROM parts WHERE k <> ' . text() . ' LIMIT ' . number() . ')' },
	sub { 'SET ROLE reader; SELECT * FROM guarded WHERE b <> ' . text() },
	sub { 'SET ROLE reader; UPDATE guarded SET b = b WHERE b = ' . text() },
	sub { 'SET ROLE reader; BEGIN; INSERT INTO guarded VALUES (' . number() . ', ' . text() . '); ROLLBACK' },
	sub { 'BEGIN; UPDATE plain t SET b = ' . text() . ', a = 1 WHERE ' . $_[0]->() . ' RETURNING b || ' . text() . '; ROLLBACK' },
	sub { 'BEGIN; UPDATE plain t SET (a, b) = (SELECT 1, k || ' . text() . ' FROM parts WHERE id = ' . number() . ') FROM ranges r WHERE r.n = t.id AND (' . $_[0]->() . '); ROLLBACK' },
	sub { 'BEGIN; DELETE FROM plain t USING parts p WHERE p.id = t.id AND p.k = ' . text() . ' AND (' . $_[0]->() . '); ROLLBACK' },
	sub { 'BEGIN; UPDATE watched SET b = b || ' . text() . ' WHERE id < 3 OR b = ' . text() . '; ROLLBACK' },
	sub { 'BEGIN; DELETE FROM watched WHERE b = ' . text() . '; ROLLBACK' },
	sub { 'BEGIN; INSERT INTO option VALUES (' . number() . ', ' . text() . '); ROLLBACK' },
	sub { 'BEGIN; INSERT INTO ranges VALUES (' . number() . ', ' . number() . '), (' . number() . ', 5) RETURNING n - ' . number() . '; ROLLBACK' },
	sub { 'BEGIN; INSERT INTO plain (id, b) VALUES (1, ' . text() . ') ON CONFLICT (id) DO UPDATE SET b = ' . text() . ' WHERE plain.b <> ' . text() . '; ROLLBACK' },
	sub { 'BEGIN; MERGE INTO guarded t USING ranges r ON t.id = r.id AND r.n <> ' . number() . ' WHEN MATCHED AND t.b = ' . text() . ' THEN UPDATE SET b = ' . text() . ' WHEN NOT MATCHED AND r.n > ' . number() . ' THEN INSERT (id) VALUES (' . number() . '); ROLLBACK' },
	sub { 'SELECT x.* FROM xmltable(\'/r\' PASSING xml \'<r a="' . bare() . '"/>\' COLUMNS v text PATH \'@a\' DEFAULT ' . kept() . ') x WHERE v <> ' . text() },
	sub { 'SELECT * FROM jsonb_to_recordset(\'[{"v": "' . bare() . '"}]\') AS x (v text) WHERE v <> ' . text() },
	sub { 'PREPARE s (int) AS SELECT * FROM plain t WHERE t.a = $1 AND (' . $_[0]->() . '); EXECUTE s (' . number() . ')' },
	sub { 'SET plan_cache_mode = force_generic_plan; PREPARE s (text, bigint) AS SELECT * FROM plain t WHERE t.b <> $1 LIMIT $2; EXECUTE s (' . text() . ', ' . wide() . ')' },
	sub { 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM plain t WHERE ' . $_[0]->() . '; FETCH 5 FROM c; FETCH BACKWARD 2 FROM c; CLOSE c; COMMIT' },
	sub { 'BEGIN; CREATE TEMP TABLE made ON COMMIT DROP AS SELECT *, ' . text() . ' AS y FROM plain t WHERE ' . $_[0]->() . '; ROLLBACK' },
	sub { 'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM plain t WHERE ' . $_[0]->() },
	sub { 'COPY (SELECT b || ' . text() . ' FROM plain t WHERE ' . $_[0]->() . ') TO STDOUT' },
	sub { 'DO $$ BEGIN PERFORM * FROM plain t WHERE ' . $_[0]->() . '; END $$' },
	sub { 'DO $$ DECLARE x int := ' . number() . '; y text := ' . text() . '; BEGIN PERFORM * FROM plain t WHERE t.a <> x AND t.b <> y; END $$' },
);
my @statements_of_17 = (
	sub { 'SELECT * FROM plain t, json_table(t.d, \'$ ? (@.k <> "' . bare() . '")\' PASSING ' . number()
		  . ' AS x COLUMNS (v text PATH ' . kept() =~ s/'/'\$./r . ' DEFAULT ' . kept() . ' ON EMPTY, NESTED PATH \'$.k[*]\' COLUMNS (w text PATH \'$\' DEFAULT ' . kept() . ' ON ERROR))) j WHERE j.v <> ' . text() },
	sub { 'BEGIN; MERGE INTO guarded t USING ranges r ON t.id = r.id WHEN NOT MATCHED BY SOURCE AND t.b <> ' . text() . ' THEN DELETE RETURNING merge_action() || ' . text() . '; ROLLBACK' },
);
my @switches = map { "SET enable_$_ = off;" } qw(seqscan indexscan indexonlyscan bitmapscan tidscan hashjoin mergejoin nestloop hashagg sort incremental_sort memoize material partition_pruning);

# A random query, with settings that give random plans. It depends on no query before it.
sub marked_query
{
	my ($major) = @_;
	my @all = (@statements, $major >= 17 ? @statements_of_17 : ());
	my $settings = join ' ', grep { rand() < 0.3 } @switches;

	return "RESET ALL; $settings " . one_of(@all)->(sub { return condition($major) });
}

1;
