#!/usr/bin/env bash
# Compares tacho record with the extension, reader by reader.
#
# usage: bench/sameness.sh [-t SECONDS] [-i MS] [-k DIR]
#
# Both record one server every MS (1000) under a mixed load of SECONDS (600): pgbench,
# short reads, a contended lock, transactions left idle, parallel queries, sleeps.
# Before and after the load the server rests, so that both have counted the same. Each
# row of the page compares the answers of a reader function from the two histories.
# Markdown on standard output; exit 1 if a row says NO.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

seconds=600 ms=1000 keep=
while getopts t:i:k: option; do
  case $option in
    t) seconds=$OPTARG ;;
    i) ms=$OPTARG ;;
    k) keep=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
bench_recorder
trap 'jobs -p | xargs -r kill 2>/dev/null || true; bench_cleanup' EXIT

stamp() { date -u +%Y-%m-%dT%H:%M:%SZ; }
script() { cat >"$BENCH_DIR/$1.sql"; }
# load NAME ARGUMENT…: pgbench for the time of the load
load() {
  local name=$1
  shift
  PGAPPNAME=$name bench_pgbench -n -T "$seconds" "$@" postgres >"$BENCH_DIR/$name.log" 2>&1 &
  loads+=($!)
}

bench_install
mapfile -t settings < <(with_tacho "${ms}ms")
bench_cluster same "${settings[@]}" "shared_preload_libraries = 'tacho, pg_stat_statements'" \
  "tacho.statements_interval = '10s'" "tacho.server_interval = '10s'" 'compute_query_id = on' \
  'max_connections = 100' 'shared_buffers = 64MB'
start same
sql -c 'CREATE EXTENSION tacho' -c 'CREATE EXTENSION pg_stat_statements' -c 'CREATE ROLE watcher LOGIN' \
  -c 'GRANT pg_monitor TO watcher' -c 'CREATE TABLE hot AS SELECT g AS id, 0 AS n FROM generate_series(1, 3) g' \
  -c 'CREATE TABLE wide AS SELECT g AS id, md5(g::text) AS t FROM generate_series(1, 400000) g' -c 'VACUUM ANALYZE' postgres
bench_pgbench -i -q -s 5 postgres >/dev/null 2>&1
"$recorder" "host=$BENCH_DIR/run port=$port dbname=postgres user=watcher" --tape "$BENCH_DIR/recorded" \
  --interval "$ms" --statements-interval 10000 --server-interval 10000 2>"$BENCH_DIR/recorder.log" &
pid=$!
script sleeps <<<'SELECT pg_sleep(random() * 3);'
script queue <<'END'
BEGIN;
UPDATE hot SET n = n + 1 WHERE id = 1;
SELECT pg_sleep(0.1 + random() * 0.3);
COMMIT;
\sleep 200 ms
END
script left <<'END'
BEGIN;
UPDATE hot SET n = n + 1 WHERE id = 2;
\sleep 700 ms
COMMIT;
\sleep 500 ms
END
script parallel <<'END'
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT count(*) FROM wide WHERE t LIKE '%abc%';
END
sleep 25 # both have read the counters so far
say "a load of $seconds s"
loads=() rest=$(stamp) # records of statements overlap the begin of a window
sleep 12
since=$(stamp)
load tpcb -c 4 -R 40 -b tpcb-like
load reads -c 3 -R 200 -b select-only
load sleeps -c 5 -f "$BENCH_DIR/sleeps.sql"
load queue -c 5 -f "$BENCH_DIR/queue.sql"
load left -c 3 -f "$BENCH_DIR/left.sql"
load parallel -c 1 -R 1 -f "$BENCH_DIR/parallel.sql"
# copies the logs before the first block is sealed, ten minutes after the begin
sleep "$((seconds < 480 ? seconds : 480))"
mkdir "$BENCH_DIR/logs"
cp -R "$BENCH_DIR/same/tacho" "$BENCH_DIR/recorded" "$BENCH_DIR/logs/"
wait "${loads[@]}"
until=$(stamp)
sleep 25
after=$(stamp)
kill -TERM "$pid"
wait "$pid" || { cat "$BENCH_DIR/recorder.log" >&2; exit 1; }
[ -z "$keep" ] || { mkdir -p "$keep" && cp -R "$BENCH_DIR/same/tacho" "$BENCH_DIR/recorded" "$BENCH_DIR/logs" "$keep/"; echo "$since $until $rest $after" >"$keep/times"; }

echo "# Sameness: extension and tacho record side by side"
echo
environment
echo "- load average $(cut -d' ' -f1-3 /proc/loadavg): the machine was shared"
echo "- command: \`bench/sameness.sh -t $seconds -i $ms\`"
echo "- load: pgbench (40 tpcb-like, 200 reads a second); sessions: 5 sleep, 5 want one row for 0.1 to 0.4 s each, 3 more, one of them idle in transaction; parallel queries"
echo
perl "$here/sameness.pl" "$TACHO_PROGRAM" "$BENCH_DIR/same/tacho" "$BENCH_DIR/recorded" "$BENCH_DIR/logs" "$ms" "$since" "$until" "$rest" "$after"
