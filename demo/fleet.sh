#!/usr/bin/env bash
# usage: demo/fleet.sh
#
# Five servers, one question: makes tapes of the inputs of conformance/, ships them to a
# directory, makes tables of Iceberg of that, and asks both, which must answer alike.
# TACHO_PROGRAM is the program, with tacho-ship beside it; tacho-fleet is in PATH, else in
# fleet/.venv, which fleet/test.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."

tacho=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-target}/release/tacho}
export PATH=$PATH:$PWD/fleet/.venv/bin TZ=UTC
command -v tacho-fleet >/dev/null || {
	echo "error: there is no tacho-fleet; pip install ./fleet, or make test-fleet, brings it" >&2
	exit 1
}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/lake"

for server in basic coverage dimensions percentile storm; do
	"$tacho" import sessions "conformance/inputs/$server.csv" --tape "$place/$server"
	"$tacho" ship --tape "$place/$server" --server "$server" --to "file://$place/lake" --label env=demo
done
catalog=sqlite:///$place/catalog.db
tacho-fleet commit "$place/lake" --catalog "$catalog"

question=(top server --by wait_event -n 5 --since 2026-01-01T00:00:00Z --until 2026-01-01T01:00:00Z)
printf '\ntacho fleet %s\n\n' "${question[*]}"
tacho-fleet "${question[@]}" --lake "$place/lake"
diff <(tacho-fleet "${question[@]}" --json --lake "$place/lake") \
	<(tacho-fleet "${question[@]}" --json --lake "$catalog")
printf '\nthe tables of Iceberg answer the same\n'
