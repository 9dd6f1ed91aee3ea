#!/usr/bin/env bash
# usage: tools/test-contrib.sh PGSRC
#
# Runs the regression and TAP suites of contrib/pg_stat_statements, unmodified,
# against tacho in its place (tacho.pg_stat_statements = on). PGSRC is a source
# tree of the same major as PG_CONFIG; nothing is written to it. The suite runs
# in a private installation (tools/stage.sh) that has contrib's control and SQL
# files and, as lib/pg_stat_statements.so, a link to tacho.so. No test is left
# out. The run fails unless tacho has counted the suite's own statements.
#
# If the source of a major is not available, PGSRC may have another major: then the
# server's own pg_stat_statements runs the suite first, and tacho must give exactly the
# same answers.
#
# Environment
#   PG_CONFIG  installation to test (default: pg_config in PATH)
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd -P)
source=$1/contrib/pg_stat_statements
[ -e "$source/Makefile" ] || die "could not find contrib/pg_stat_statements in \"$1\""
suite_major=$(sed -n "s/^PACKAGE_VERSION='\([0-9]*\).*/\1/p" "$1/configure")

# Stage, then run this script once more as a user that servers may run as.
if [ -z "${TACHO_SCRATCH:-}" ]; then
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/tacho-contrib.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	config=$(TACHO_STRICT=1 "$here/stage.sh" "$scratch" 2>"$scratch/build.log") ||
		{ tail -n 20 "$scratch/build.log" >&2; die "could not build tacho"; }
	lib=$("$config" --pkglibdir)
	if [[ "$("$config" --version)" = "PostgreSQL $suite_major"[^0-9]* ]]; then
		rm -f "$("$config" --sharedir)"/extension/pg_stat_statements*
		cp "$source"/*.control "$source"/*.sql "$("$config" --sharedir)/extension/"
	else
		[ -e "$lib/pg_stat_statements.so" ] || die "the server has no pg_stat_statements to compare with"
		cp -L "$lib/pg_stat_statements.so" "$scratch/contrib.so"
	fi
	rm -f "$lib/pg_stat_statements.so"
	ln -s tacho.so "$lib/pg_stat_statements.so"
	cp -R "$source" "$scratch/suite"
	chmod -R u+w,go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$here/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	TACHO_SCRATCH=$scratch PG_CONFIG=$config "$here/as-server.sh" src/tools/test-contrib.sh "$1"
	exit
fi

cd "$TACHO_SCRATCH"
unset PGHOST PGPORT PGDATABASE PGUSER PGOPTIONS
export LC_ALL=C
bin=$("$PG_CONFIG" --bindir)
test=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
version=$("$PG_CONFIG" --version)

{
	cat suite/pg_stat_statements.conf
	echo "tacho.pg_stat_statements = on"
	echo "tacho.query_text = raw" # else a query inside of a command has no neighbours in its text
	echo "tacho.statements_max = 5000"
} >suite.conf

# the list of tests, from the suite's own Makefile
mapfile -t names < <(make -s -f - 2>/dev/null <<-END | tr ' ' '\n' | sed '/^$/d'
	$(sed -n '/^REGRESS *=/,/[^\\]$/p' suite/Makefile)
	all: ; @echo \$(REGRESS)
END
)
[ ${#names[@]} -gt 0 ] || die "found no test in \"$1\""

# the proof that tacho has counted: the last query on the suite's server
cat >suite/sql/tacho_counted.sql <<'END'
CREATE EXTENSION tacho;
SELECT count(*) > 0 AS counted FROM tacho.statements_info WHERE normalizations > 0;
DROP EXTENSION tacho CASCADE;
END
cat >suite/expected/tacho_counted.out <<'END'
CREATE EXTENSION tacho;
SELECT count(*) > 0 AS counted FROM tacho.statements_info WHERE normalizations > 0;
 counted 
---------
 t
(1 row)

DROP EXTENSION tacho CASCADE;
END

# suite CONFIGURATION NAME...
suite() {
	"$test/regress/pg_regress" --inputdir=suite --outputdir=suite --bindir="$bin" \
		--temp-instance=suite/instance --temp-config="$1" \
		--dbname=contrib_regression "${@:2}"
}

if [ -e contrib.so ]; then
	lib=$("$PG_CONFIG" --pkglibdir)/pg_stat_statements.so
	rm "$lib"
	cp contrib.so "$lib"
	suite suite/pg_stat_statements.conf "${names[@]}" >contrib.log 2>&1 || true
	same=$(grep -cE '^ok [0-9]+ ' contrib.log || true)
	for each in "${names[@]}"; do
		[ -s "suite/results/$each.out" ] || die "the server's own module does not run test \"$each\""
		mv "suite/results/$each.out" "suite/expected/$each.out"
		rm -f "suite/expected/${each}"_[0-9].out
	done
	rm -rf suite/regression.* suite/instance
	ln -sf tacho.so "$lib"
	echo "suite of $suite_major on $version: its own module gives $same of ${#names[@]} expected answers; tacho is compared with what it gives"
fi

failed=0
suite suite.conf "${names[@]}" tacho_counted || failed=1
[ ! -s suite/regression.diffs ] || cat suite/regression.diffs

export PG_REGRESS=$test/regress/pg_regress PATH=$bin:$PATH PGPORT=65431
export TESTDATADIR=$PWD/tap TESTLOGDIR=$PWD/tap/log TESTDIR=$PWD TEMP_CONFIG=$PWD/suite.conf
for each in suite/t/*.pl; do
	[ -e "$each" ] || continue
	mkdir -p tap/log
	prove -v -I "$test/perl" "$each" || failed=1
done
[ $failed = 0 ] || die "the suite of $version failed"
echo "$version: suite of pg_stat_statements of $suite_major passed"
