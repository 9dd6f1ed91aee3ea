#!/usr/bin/env bash
# usage: fleet/test.sh [ARGUMENT OF PYTEST]...
#
# Tests of the Python package. Its environment, fleet/.venv, is made when there is none
# for these dependencies; TACHO_PROGRAM is the program that makes tapes, with tacho-ship
# beside it. ENGINES names the engines that are tried, or is "all": what they need is
# installed then (Spark needs Java 17 or later, and fetches the runtime of Iceberg).
set -euo pipefail
cd "$(dirname "$0")"

wanted=$(cat pyproject.toml engines/__init__.py | sha256sum)
if [ "$(cat .venv/made-of 2>/dev/null)" != "$wanted" ]; then
	rm -rf .venv
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --editable '.[test]'
	echo "$wanted" >.venv/made-of
fi
export TACHO_FLEET_ENGINES=${ENGINES:-duckdb}
[ "$TACHO_FLEET_ENGINES" != all ] || TACHO_FLEET_ENGINES='duckdb clickhouse datafusion spark'
for engine in $TACHO_FLEET_ENGINES; do
	if [ "$engine" != duckdb ] && [ ! -e ".venv/has-$engine" ]; then
		.venv/bin/pip install --quiet --disable-pip-version-check --editable ".[$engine]"
		touch ".venv/has-$engine"
	fi
done
export PATH=$PWD/.venv/bin:$PATH
export TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$(realpath ..)/target}/release/tacho}
[ -x "$TACHO_PROGRAM-ship" ] || {
	echo "error: there is no $TACHO_PROGRAM-ship; make program builds it" >&2
	exit 1
}
ruff format --quiet --check . && ruff check --quiet .
python -m pytest "$@"
