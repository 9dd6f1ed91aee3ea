#!/usr/bin/env bash
# Cost that 500 waiters on one lock add to a tick.
#
# usage: bench/locks.sh [-w WAITERS] [-n TICKS]
#
# Three states of one server: WAITERS sessions that sleep, the same number that wait for
# one advisory lock, and the same number that wait for one row. For each state, the cost
# of TICKS ticks as the sampler measures it (CPU time of the whole tick, frame
# included). Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

waiters=500 ticks=50
while getopts w:n: option; do
  case $option in
    w) waiters=$OPTARG ;;
    n) ticks=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap 'jobs -p | xargs -r kill 2>/dev/null; bench_cleanup' EXIT
bench_install
ulimit -n 8192
mapfile -t settings < <(with_tacho 200ms)
bench_cluster locks "${settings[@]}" "deadlock_timeout = 1h"
start locks
sql -c 'CREATE EXTENSION tacho' -c 'CREATE TABLE t (id int, v int)' -c 'INSERT INTO t VALUES (1, 0)' postgres

# measure NAME HOLDER WAITER: a row of the table
measure() {
  local name=$1 loads costs
  echo "$3" >"$BENCH_DIR/waiter.sql"
  mkfifo "$BENCH_DIR/holder"
  sql postgres <"$BENCH_DIR/holder" >/dev/null 2>&1 &
  exec 3>"$BENCH_DIR/holder"
  echo "$2" >&3
  sleep 1
  bench_pgbench -n -M simple -f "$BENCH_DIR/waiter.sql" -c "$waiters" -j 1 -T 3600 postgres >/dev/null 2>&1 &
  loads=$!
  until [ "$(sql -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench' AND wait_event IN ('PgSleep', 'advisory', 'tuple', 'transactionid')" postgres)" = "$waiters" ]; do sleep 0.5; done
  sleep 2
  costs=$(sql postgres <<SQL
    CREATE TEMP TABLE cost AS SELECT 0::bigint AS tick, 0::bigint AS us WITH NO DATA;
    DO \$\$ DECLARE seen bigint := 0; taken bigint; us bigint; BEGIN
      WHILE (SELECT count(*) FROM cost) < $ticks LOOP
        SELECT max(value::bigint) FILTER (WHERE metric = 'ticks_taken'), max(value::bigint) FILTER (WHERE metric = 'tick_cost_us')
          INTO taken, us FROM tacho.status();
        IF taken > seen THEN INSERT INTO cost VALUES (taken, us); seen := taken; END IF;
        PERFORM pg_sleep(0.1);
      END LOOP; END \$\$;
    SELECT format('%s | %s | %s | %s', min(us), percentile_disc(0.5) WITHIN GROUP (ORDER BY us),
                  percentile_disc(0.9) WITHIN GROUP (ORDER BY us), max(us)) FROM cost;
SQL
  )
  kill "$loads"
  sql -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'pgbench'" postgres >/dev/null
  exec 3>&-
  wait 2>/dev/null || true
  rm "$BENCH_DIR/holder"
  echo "| $name | $costs |"
}

echo "# Cost of lock waits in a tick"
echo
environment
echo "- command: \`bench/locks.sh -w $waiters -n $ticks\`"
echo "- budget: 2,000 µs a tick with 500 waiters on one lock"
echo
echo "| $waiters sessions | µs a tick: least | median | p90 | most |"
echo "|---|--:|--:|--:|--:|"
measure "asleep" "SELECT 1;" "SELECT pg_sleep(3600);"
measure "waiting for one advisory lock" "SELECT pg_advisory_lock(1);" "SELECT pg_advisory_lock(1);"
measure "waiting for one row" "BEGIN; UPDATE t SET v = 1;" "UPDATE t SET v = 2;"
stop locks
