#!/usr/bin/env bash
# usage: fleet/test.sh [ARGUMENT OF PYTEST]...
#
# Tests of the Python package, in an environment that fleet/venv.sh makes. TACHO_PROGRAM is
# the program that makes tapes, with tacho-ship beside it. ENGINES names the engines that
# are tried, or is "all"; Spark needs Java 17 or later, and fetches the runtime of Iceberg.
# Azurite, by npm, stands in for the object store of Azure; without it its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")"

export TACHO_FLEET_ENGINES=${ENGINES:-duckdb}
[ "$TACHO_FLEET_ENGINES" != all ] || TACHO_FLEET_ENGINES='duckdb clickhouse datafusion spark'
read -ra engines <<<"$TACHO_FLEET_ENGINES"
./venv.sh test postgres "${engines[@]}"
venv=$(realpath "${FLEET_VENV:-.venv}")
[ -x "$venv/azurite/node_modules/.bin/azurite-blob" ] ||
	npm install --silent --no-audit --no-fund --prefix "$venv/azurite" azurite@3.35.0 ||
	echo "warning: Azurite could not be installed by npm" >&2
PATH=$venv/bin:$PATH
export TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$(realpath ..)/target}/release/tacho}
[ -x "$TACHO_PROGRAM-ship" ] || {
	echo "error: there is no $TACHO_PROGRAM-ship; make program builds it" >&2
	exit 1
}
ruff format --quiet --check . && ruff check --quiet .
python -m pytest "$@"
