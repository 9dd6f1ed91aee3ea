#!/usr/bin/env bash
# usage: tools/dropin-tools.sh [-a PG_ASH]
#
# Shows tools that want pg_stat_statements working on tacho in its place:
# PoWA (snapshots into its own tables) and postgres_exporter (metrics), from
# Debian's packages, unpacked and not installed; with -a also pg_ash, whose
# source tree PG_ASH names. A private server of PG_CONFIG's major, a load of
# known statements, and what each tool says of it; a tool that has no package
# here is left out. Exit 1 when a tool did not find the load.
#
# Needs apt and its mirror, so it is not among the tests.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/../bench/lib.sh"

ash='' failed=0
while getopts a: option; do
  case $option in
    a) ash=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
bench_install

# found TOOL WHAT EXPECTED GOT
found() {
  local word=works
  [ "$3" = "$4" ] || word="FAILED, expected $3" failed=1
  printf '%-20s %s: %s, %s\n' "$1" "$2" "$4" "$word"
}

load() { # 25 calls of one statement
  for _ in $(seq 25); do echo "SELECT 1, 'a known load';"; done | sql postgres >/dev/null
}

# PoWA has settings of its own; without its worker snapshots are taken by hand
libraries=tacho
if bench_package powa; then libraries=tacho,powa; fi
bench_cluster data "shared_preload_libraries = '$libraries'" "tacho.pg_stat_statements = on" \
  "powa.frequency = -1" "powa.database = 'postgres'"
start data
sql postgres -c "CREATE EXTENSION tacho" -c "SELECT tacho.install_pg_stat_statements()" \
  -c "CREATE VIEW known AS SELECT * FROM pg_stat_statements WHERE query = 'SELECT \$1, \$2'" >/dev/null
load
found pg_stat_statements "calls of the load" 25 "$(sql postgres -c "SELECT calls FROM known")"

if [ "$libraries" != tacho ]; then
  sql postgres -c "SET client_min_messages = error" -c "CREATE EXTENSION powa CASCADE" \
    -c "SELECT powa_take_snapshot()" >/dev/null
  load
  sql postgres -c "SELECT powa_take_snapshot()" >/dev/null
  found PoWA "calls between two snapshots" 25 "$(sql postgres -c "
    SELECT max((h.record).calls) - min((h.record).calls)
      FROM powa_statements_history_current h JOIN known k USING (queryid, dbid, userid)")"
else
  say "no package of PoWA for this PostgreSQL: left out"
fi

mkdir -p "$BENCH_DIR/packages/exporter"
if (cd "$BENCH_DIR/packages" && apt-get -qq download prometheus-postgres-exporter >/dev/null 2>&1) &&
  dpkg-deb -x "$BENCH_DIR"/packages/prometheus-postgres-exporter_*.deb "$BENCH_DIR/packages/exporter"; then
  cat >"$BENCH_DIR/queries.yaml" <<-'END'
	pg_stat_statements:
	  query: "SELECT queryid::text, calls FROM known"
	  metrics:
	    - queryid: {usage: "LABEL", description: "query"}
	    - calls: {usage: "COUNTER", description: "executions"}
	END
  DATA_SOURCE_NAME="host=$BENCH_DIR/run port=$port user=postgres dbname=postgres sslmode=disable" \
    "$BENCH_DIR/packages/exporter/usr/bin/prometheus-postgres-exporter" \
    --web.listen-address="127.0.0.1:$((port + 1))" --extend.query-path="$BENCH_DIR/queries.yaml" \
    >"$BENCH_DIR/exporter.log" 2>&1 &
  exporter=$!
  metric=''
  for _ in $(seq 100); do
    metric=$(curl -s "http://127.0.0.1:$((port + 1))/metrics" |
      sed -n 's/^pg_stat_statements_calls{.*} \([0-9]*\)$/\1/p') || true
    [ -z "$metric" ] || break
    sleep 0.1
  done
  kill "$exporter"
  found postgres_exporter "calls it exports" "$(sql postgres -c "SELECT calls FROM known")" "$metric"
else
  say "no package of postgres_exporter: left out"
fi

if [ -n "$ash" ]; then
  sql postgres -v ON_ERROR_STOP=1 -c "SET client_min_messages = error" -f "$ash/sql/ash-install.sql" >/dev/null
  sql postgres -c "SELECT count(pg_sleep(5)) AS slept" >/dev/null &
  sleep 1
  sql postgres -c "SELECT ash.take_sample()" >/dev/null
  wait %% || true
  found pg_ash "text of a sampled statement" "SELECT count(pg_sleep(\$1)) AS slept" "$(sql postgres -c "
    SELECT a.query_text FROM ash.samples() a
      WHERE a.query_text ~ 'pg_sleep' LIMIT 1")"
fi
exit $failed
