#!/usr/bin/env bash
# usage: fleet/test.sh [ARGUMENT OF PYTEST]...
#
# Tests of the Python package, in an environment that fleet/venv.sh makes. Without arguments
# three files of tests run side by side (TACHO_FLEET_JOBS). TACHO_PROGRAM is the program that
# makes tapes, with tacho-ship beside it. ENGINES names the engines to test, or is "all"; Spark
# needs Java 17 or later, and fetches the runtime of Iceberg. If npm is installed, Azurite
# simulates Azure's object store; if Go is installed, fake-gcs-server simulates Google's. Failed
# tests are run again up to TACHO_TRIES times (default 1: not at all). The last line is "N
# passed, N failed". A line "NOT RUN" before it names tests that were left out because of a
# failed download. (npm may hang, and has five minutes.) This is no failure while the index of
# packages is unreachable.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tools/scratch.sh
source ../tools/scratch.sh
# shellcheck source=tools/pool.sh
source ../tools/pool.sh

export TACHO_FLEET_ENGINES=${ENGINES:-duckdb}
[ "$TACHO_FLEET_ENGINES" != all ] || TACHO_FLEET_ENGINES='duckdb clickhouse datafusion spark'
read -ra engines <<<"$TACHO_FLEET_ENGINES"
export TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$(realpath ..)/target}/release/tacho}
[ -x "$TACHO_PROGRAM-ship" ] || {
	echo "error: there is no $TACHO_PROGRAM-ship; make program builds it" >&2
	exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log

# install: makes the environment; tries again once, because the network may be down for
# a moment
install() {
	./venv.sh test postgres "${engines[@]}" || ./venv.sh test postgres "${engines[@]}"
}

# is_reachable: whether the index of packages answers, for a small package
is_reachable() {
	"$venv/bin/pip" download --quiet --no-cache-dir --no-deps --dest "$scratch" iniconfig
}

venv=${FLEET_VENV:-.venv}
if ! install; then
	if [ ! -x "$venv/bin/pip" ] || is_reachable; then exit 1; fi
	echo 'NOT RUN fleet: the index of Python packages cannot be reached'
	echo '0 passed, 0 failed'
	exit 0
fi
venv=$(realpath "$venv")
[ -x "$venv/azurite/node_modules/.bin/azurite-blob" ] ||
	timeout 300 npm install --silent --no-audit --no-fund --prefix "$venv/azurite" azurite@3.35.0 ||
	echo 'NOT RUN fleet, az://: npm could not install Azurite'
[ -x "$venv/google/fake-gcs-server" ] || ! command -v go >/dev/null ||
	GOBIN=$venv/google timeout 900 go install github.com/fsouza/fake-gcs-server@v1.56.1 ||
	echo 'NOT RUN fleet, gs://: Go could not build fake-gcs-server'
PATH=$venv/bin:$PATH
ruff format --quiet --check .
ruff check --quiet .

# names: names of the failed tests
names() { sed -nE 's/^(FAILED|ERROR) (tests\/.*)$/\2/p' "$log" | sed 's/ - .*//' | paste -sd ' '; }

[ $# != 0 ] || set -- --numprocesses "${TACHO_FLEET_JOBS:-3}" --dist loadfile
passed=0 try=1
while :; do
	status=0
	python -m pytest "$@" | tee "$log" || status=$?
	read -r ok failed < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1)
	passed=$((passed + ok))
	# 1 means failed tests; other errors are not tried again
	[ $status = 1 ] || break
	again $((try++)) "fleet: $(names)" "$log" || break
	set -- --last-failed
done
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$status"
