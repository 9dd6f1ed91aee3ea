# shellcheck shell=bash
# Functions of tick_cost.sh and record_cost.sh; sourced after lib.sh, not run. The
# scripts set active, spin and ash.

: "${active:=0}" "${spin:=}" "${ash:=}"
cpu_us() { awk '{printf "%.0f\n", $1 / 1000}' "/proc/$1/schedstat"; }
pid_of() { sql -c "SELECT pid FROM pg_stat_activity WHERE backend_type = '$1' OR application_name = '$1'" postgres; }

start_loads() {
  printf 'SELECT pg_sleep(0.2 + random());\n' >"$BENCH_DIR/active.sql"
  [ -z "$spin" ] || printf 'SELECT count(*) FROM generate_series(1, 300000);\n' >"$BENCH_DIR/active.sql"
  printf 'SELECT 1;\n\\sleep 3600 s\n' >"$BENCH_DIR/idle.sql"
  bench_pgbench -n -f "$BENCH_DIR/active.sql" -c "$active" -j 1 -T 36000 postgres >/dev/null 2>&1 &
  bench_pgbench -n -f "$BENCH_DIR/idle.sql" -c $((1000 - active)) -j 1 -T 36000 postgres >/dev/null 2>&1 &
  until [ "$(sql -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'" postgres)" = 1000 ]; do sleep 0.5; done
}

# start_loop NAME SCRIPT MS [DATABASE]: a session that calls NAME.take_sample(), made by
# SCRIPT, as pg_cron would
start_loop() {
  sql -f "$2" -c "CREATE SEQUENCE ticks_of_$1" "${4:-postgres}" >/dev/null 2>&1
  sql "${4:-postgres}" >/dev/null 2>&1 < <(printf '%s\n' "SET application_name = '$1';" \
    "SELECT $1.take_sample(), nextval('ticks_of_$1')" "\\watch $(awk "BEGIN { print $3 / 1000 }")") &
}
loop_ticks() { sql -c "SELECT last_value FROM ticks_of_$1" "${2:-postgres}"; }
start_ash() { [ -z "$ash" ] || start_loop ash "$ash" "$1"; }
ash_ticks() { if [ -n "$ash" ]; then loop_ticks ash; else echo 0; fi; }
wal() { sql -c "SELECT pg_current_wal_insert_lsn() - '0/0'" postgres; }

