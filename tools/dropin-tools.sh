#!/usr/bin/env bash
# usage: tools/dropin-tools.sh [-a PG_ASH] [-c PGCENTER]
#
# Shows that tools for pg_stat_statements work on tacho in its place. The tools are PoWA
# (snapshots into its own tables) and postgres_exporter (metrics), from Debian's packages,
# unpacked and not installed. With -a pg_ash is one of them, with -c pgcenter; both options
# name a source tree. pgcenter is built with go; if PATH has pgcenter, -c is not needed. A tool
# that is not available is left out, with a message. Starts a private server of PG_CONFIG's
# major, whose list of libraries names a link to tacho. Runs a load of known statements and
# prints the report of each tool about it. Then it checks a database made later, and the
# history after a reset. Exit 1 if the load was not found.
#
# Needs apt and its mirror, so it is not among the tests.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/../bench/lib.sh"

ash='' center_source='' failed=0 loads=0
while getopts a:c: option; do
  case $option in
    a) ash=$OPTARG ;;
    c) center_source=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
bench_install

# found TOOL WHAT EXPECTED GOT
found() {
  local word=works
  [ "$3" = "$4" ] || word="FAILED, expected $3" failed=1
  printf '%-22s %s: %s, %s\n' "$1" "$2" "$4" "$word"
}

load() { # 25 calls of one statement
  loads=$((loads + 25))
  for _ in $(seq 25); do echo "SELECT 1, 'a known load';"; done | sql postgres >/dev/null
}

# PoWA has settings of its own; without its worker snapshots are taken by hand
libraries=pg_stat_statements
if bench_package powa; then libraries+=,powa; fi
mkdir "$BENCH_DIR/link"
ln -s "$("$bin/pg_config" --pkglibdir)/tacho.so" "$BENCH_DIR/link/pg_stat_statements.so"
bench_cluster data "shared_preload_libraries = '$libraries'" "dynamic_library_path = '$BENCH_DIR/link:\$libdir'" \
  "tacho.pg_stat_statements = on" "tacho.program = '$bin/tacho'" "tacho.statements_interval = 1s" \
  "tacho.flush_interval = 1s" "powa.frequency = -1" "powa.database = 'postgres'"
start data
sql postgres -c "CREATE EXTENSION tacho" -c "SELECT tacho.install_pg_stat_statements()" \
  -c "CREATE VIEW known AS SELECT * FROM pg_stat_statements WHERE query = 'SELECT \$1, \$2'" >/dev/null
load
found pg_stat_statements "calls of the load" 25 "$(sql postgres -c "SELECT calls FROM known")"

if [ "$libraries" != pg_stat_statements ]; then
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
center=$(command -v pgcenter || true)
if [ -n "$center_source" ] && (cd "$center_source" && GOTOOLCHAIN=local go build -o "$BENCH_DIR/pgcenter" ./cmd 2>/dev/null); then
  center=$BENCH_DIR/pgcenter
fi
if [ -n "$center" ]; then
  "$center" record -c 2 -f "$BENCH_DIR/center.tar" -h "$BENCH_DIR/run" -p "$port" -U postgres -d postgres >/dev/null
  # a report's columns: user, database, calls and rows in all, the same since the sample before
  # shellcheck disable=SC2016 # the statement's own $
  found pgcenter "calls it recorded" "$(sql postgres -c "SELECT calls FROM known")" "$("$center" report -X g -t 0 -f "$BENCH_DIR/center.tar" |
    sed -n 's/^.* postgres  *\([0-9][0-9]*\) .*SELECT \$1, \$2 *$/\1/p' | tail -n 1)"
else
  say "no pgcenter in PATH, none built of -c: left out"
fi

sql postgres -c "CREATE DATABASE later" >/dev/null
sql later -c "CREATE EXTENSION pg_stat_statements" >/dev/null
found "a database made later" "calls its view shows" "$loads" "$(sql later -c "
  SELECT sum(calls) FROM pg_stat_statements WHERE query = 'SELECT \$1, \$2'")"

query_id=$(sql postgres -c "SELECT queryid FROM known")
load
sql postgres -c "SELECT pg_stat_statements_reset()" >/dev/null
load
calls=''
for _ in $(seq 100); do
  calls=$(sql postgres -c "SELECT calls FROM tacho.statements_history(since => now() - interval '1 hour', query_id => '$query_id')")
  [ "$calls" != "$loads" ] || break
  sleep 0.5
done
found "after a reset" "calls in the history" "$loads" "$calls"
exit $failed
