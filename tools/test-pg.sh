#!/usr/bin/env bash
# usage: tools/test-pg.sh [-kas] [NAME]...
#
# Builds the extension for one PostgreSQL and runs its tests there: pg_regress
# (extension/test/sql), isolation (test/specs), TAP (test/t). With NAMEs it runs only the
# tests whose names contain one of them.
#   -k  keeps the scratch directory.
#   -a  makes the output of pg_regress the expected one (extension/test/expected).
#   -s  leaves out the tests of programs that connect to the server (test/t/2*).
#
# Everything happens on copies in a scratch directory, as a user that servers
# may run as, with warnings as errors. Tests run side by side (tools/pool.sh), the
# longest first. The last line counts: "15.20: N passed, N failed".
#
# Environment
#   PG_CONFIG      installation to test (default: pg_config in PATH)
#   TACHO_PROGRAM  tacho program to test (default: target/release/tacho)
#   TACHO_JOBS     tests at a time (default: two for each CPU)
#   TACHO_TRIES    how often a TAP test is run until it passes (default: 1); one that fails
#                  in two or more tries is run once more at the end, alone in the pool
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
keep=0 accept=0; while getopts kas option; do
	case $option in
	k) keep=1 ;; a) accept=1 ;; s) export TACHO_LEFT_OUT=2 ;;
	*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# Stage everything in a scratch directory, then run this script once more from
# there, as the other user.
if [ -z "${TACHO_SCRATCH:-}" ]; then
	# shellcheck source=tools/scratch.sh
	source "$here/scratch.sh"
	scratch=$(mktemp -d "$TMPDIR/tacho-test.XXXXXX")
	if [ $keep = 1 ]; then echo "scratch directory: $scratch" >&2; else
		trap 'rm -rf "$scratch"' EXIT
	fi
	mkdir "$scratch/out"
	TACHO_STRICT=1 "$here/stage.sh" "$scratch" >"$scratch/pg_config" 2>"$scratch/out/build.log" ||
		rm -f "$scratch/pg_config"
	chmod -R go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$here/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	[ $accept = 0 ] || trap '[ ! -d "$scratch/out/regress/results" ] || cp -v "$scratch"/out/regress/results/*.out "$here/../extension/test/expected/"; rm -rf "$scratch"' EXIT
	TACHO_SCRATCH=$scratch "$here/as-server.sh" src/tools/test-pg.sh "$@"
	exit
fi

cd "$TACHO_SCRATCH"
unset PGHOST PGPORT PGDATABASE PGUSER PGOPTIONS
export PG_CONFIG=${PG_CONFIG:-pg_config} LC_ALL=C.UTF-8
[ ! -e pg_config ] || PG_CONFIG=$(<pg_config)
bin=$("$PG_CONFIG" --bindir)
export TACHO_PROGRAM=$bin/tacho
test=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
version=$("$PG_CONFIG" --version)
version=${version#PostgreSQL } version=${version%% *}

# result NAME PASSED FAILED LOG SECONDS: a line, and the log's end if a test has
# failed. Prints all of it at once, because other tests print at the same time.
result() {
	echo "$2 $3" >"$TACHO_SCRATCH/out/$1.result"
	if [ "$3" = 0 ]; then
		printf '%s: %-40s %4d passed %5d s\n' "$version" "$1" "$2" "$5"
	else
		printf '%s: %-40s %4d passed, %d FAILED %5d s\n' "$version" "$1" "$2" "$3" "$5"
		tail -n "${TACHO_LOG_LINES:-60}" "$4" | sed 's/^/    /'
	fi >"$TACHO_SCRATCH/out/$1.said"
	cat "$TACHO_SCRATCH/out/$1.said"
}

# pg_regress and its sibling for isolation tests count alike
regress() { # LABEL PROGRAM DIRECTORY SUFFIX FILTER...
	local label=$1 program=$2 names=() each log ok bad started=$SECONDS
	for each in extension/test/"$3"/*."$4"; do
		each=$(basename "$each" ".$4")
		[ ! -e "extension/test/$3/$each.$4" ] || ! wanted "$each" "${@:5}" || names+=("$each")
	done
	[ ${#names[@]} -gt 0 ] || return 0
	log=$TACHO_SCRATCH/out/$label.log
	mkdir -p "../out/$label"
	(cd extension/test && "$program" --inputdir=. --outputdir="$TACHO_SCRATCH/out/$label" \
		--bindir="$bin" --temp-instance="$TACHO_SCRATCH/out/$label/instance" \
		--temp-config="$TACHO_SCRATCH/out/regress.conf" --dbname=contrib_regression \
		"${names[@]}") >"$log" 2>&1 || true
	# "test x ... ok" in 15, "ok 1 - x" since 16
	ok=$(grep -cE '^(test .*\.\.\. +ok|ok [0-9]+ )' "$log" || true)
	bad=$((${#names[@]} - ok))
	[ ! -e "../out/$label/regression.diffs" ] || cat "../out/$label/regression.diffs" >>"$log"
	result "$label" "$ok" "$bad" "$log" $((SECONDS - started))
}

cd src
# shellcheck source=tools/pool.sh
source tools/pool.sh
# shellcheck source=tools/wanted.sh
source tools/wanted.sh
# shellcheck source=tools/tap.sh
source tools/tap.sh
pool_open
if [ ! -e ../pg_config ]; then
	result build 0 1 "$TACHO_SCRATCH/out/build.log" "$SECONDS"
else
	cat extension/test/regress.conf >../out/regress.conf 2>/dev/null ||
		echo "shared_preload_libraries = 'tacho'" >../out/regress.conf
	template
	pool_run regress regress "$test/regress/pg_regress" sql sql "$@"
	pool_run regress isolation "$test/isolation/pg_isolation_regress" specs spec "$@"
	while read -r each; do
		if wanted "$(basename "$each" .pl)" "$@"; then pool_run tap "$each"; fi
	done < <(tap_files)
	wait
	touch ../out/alone
	mapfile -t alone <../out/alone
	for each in "${alone[@]}"; do pool_alone tap "$each" $((TACHO_TRIES + 1)); done
fi
read -r passed failed < <(cat ../out/*.result | awk '{ ok += $1; bad += $2 } END { print ok + 0, bad + 0 }')
echo "$version: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
