#!/usr/bin/env bash
# usage: demo/fleet.sh
# Five servers, one question. It makes tapes of the inputs of conformance/, ships them to
# a directory, and makes Iceberg tables of them. Then it asks three engines (ENGINES),
# which must answer alike. TACHO_PROGRAM is the program, with tacho-ship beside it; what
# Python needs is installed in fleet/.venv. Environment: NO_COLOR.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=demo/say.sh
source demo/say.sh

read -ra engines <<<"${ENGINES:-duckdb clickhouse datafusion}"
fleet/venv.sh "${engines[@]}"
tacho=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-target}/release/tacho}
PATH=$(realpath "${FLEET_VENV:-fleet/.venv}")/bin:$PATH
export PATH TZ=UTC
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/lake"

# Shows a command, in lines of a terminal.
show() {
	local line='$' word
	echo
	for word; do
		if [ $((${#line} + ${#word})) -gt 76 ]; then
			say "$line \\"
			line='   '
		fi
		line+=" $word"
	done
	say "$line"
}
# Hides what a command prints, unless it fails.
quiet() {
	"$@" 2>"$place/said" || {
		cat "$place/said" >&2
		return 1
	}
}

show tacho ship --tape DIR --server NAME --to file:///lake --label env=demo
for server in basic coverage dimensions percentile storm; do
	quiet "$tacho" import sessions "conformance/inputs/$server.csv" --tape "$place/$server"
	printf '%-12s' "$server"
	"$tacho" ship --tape "$place/$server" --server "$server" --to "file://$place/lake" \
		--label env=demo 2>&1
done

catalog=sqlite:///$place/catalog.db
show tacho fleet commit /lake --catalog sqlite:////lake/catalog.db
tacho-fleet commit "$place/lake" --catalog "$catalog"

question=(top server --by wait_event -n 3 --since 2026-01-01T00:00Z --until 2026-01-01T01:00Z)
show tacho fleet "${question[@]}" --lake /lake
tacho-fleet "${question[@]}" --lake "$place/lake" | tee "$place/answer"
for engine in "${engines[@]}"; do
	show tacho fleet "${question[@]}" "--lake sqlite:////lake/catalog.db" "--engine $engine"
	quiet tacho-fleet "${question[@]}" --lake "$catalog" --engine "$engine" >"$place/other"
	diff "$place/answer" "$place/other"
	echo 'the tables of Iceberg answer the same'
done
printf '\nThe lake was in a directory that is removed now. A lake of yours: docs/fleet.md\n'
