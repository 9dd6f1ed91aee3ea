#!/usr/bin/env bash
# Cost of sampling: tacho, pg_wait_sampling and pg_ash side by side.
#
# usage: bench/tick_cost.sh [-t SECONDS] [-a ASH_SQL] [-i "INTERVAL..."] [-n "ACTIVE..."] [-s]
#
# 1,000 connections, 50 or 500 of them active, in transactions of 0.2 to 1.2
# s, so that starts and waits change between ticks. Active sessions sleep, or
# with -s are on a CPU or in its queue. All samplers watch the same load at 1
# s, then at 10 ms. Each has a process of its own; its CPU time is the
# difference in /proc/PID/schedstat. pg_wait_sampling is measured if apt has
# it; pg_ash, if -a or ASH_SQL names its SQL, in a loop, as pg_cron would call
# it. Bytes written are write_bytes of /proc/PID/io; bytes stored are the size
# of the directory after a restart has sealed it. strace, if installed, then
# counts calls of fdatasync. With defaults: 5 minutes. Markdown on standard
# output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/tick_cost.functions.sh
source "$here/tick_cost.functions.sh"

seconds=25 ash=${ASH_SQL:-} intervals='1s 10ms' actives='50 500' spin=
ash=${ash##* } # if several are named, the last one, which is the newest
while getopts t:a:i:n:s option; do
  case $option in
    t) seconds=$OPTARG ;;
    a) ash=$(realpath "$OPTARG") ;;
    i) intervals=$OPTARG ;;
    n) actives=$OPTARG ;;
    s) spin=' -s' ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap 'jobs -p | xargs -r kill 2>/dev/null || true; bench_cleanup' EXIT

written() { sed -n 's/^write_bytes: //p' "/proc/$1/io"; }
status() { sql -c "SELECT value FROM tacho.status() WHERE metric = '$1'" postgres; }
row() { printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$@"; }

# per NAME TICKS CPU_US: a row; a sampler that took no tick has none
per() {
  [ "$2" -gt 0 ] || return 0
  row "$1" "$interval" "$active of 1,000" "$2" "$(awk "BEGIN { printf \"%.0f\", $3 / $2 }")" \
    "$(awk "BEGIN { printf \"%.1f\", $3 / 1e6 * 3600 / $elapsed * 1000 }")" "${4:-–}"
}

# fdatasyncs PID: number in 4 flush intervals
fdatasyncs() {
  command -v strace >/dev/null || { echo "–"; return; }
  timeout 20 strace -f -qq -e trace=fdatasync,fsync -o "$BENCH_DIR/strace" -p "$1" 2>/dev/null || true
  awk -v n="$(grep -cE '(fdatasync|fsync)\(' "$BENCH_DIR/strace")" 'BEGIN { printf "%.1f", n / 4 }'
}

# measure: the rows of one interval and number of active sessions
measure() {
  local name="t${interval}_$active" ms=${interval%ms} settings=() preload=tacho
  [ "$interval" = 1s ] && ms=1000
  mapfile -t settings < <(with_tacho "$interval")
  [ -e "$("$bin/pg_config" --pkglibdir)/pg_wait_sampling.so" ] && preload=tacho,pg_wait_sampling
  bench_cluster "$name" "${settings[@]}" "shared_preload_libraries = '$preload'"
  [ $preload = tacho ] || echo "pg_wait_sampling.history_period = $ms
pg_wait_sampling.profile_period = $ms" >>"$BENCH_DIR/$name/postgresql.conf"
  start "$name"
  sql -c 'CREATE EXTENSION tacho' postgres
  start_loads
  start_ash "$ms"
  sleep 5
  local sampler writer collector ash_pid t0 c0 w0 b0 p0 a0 n0 l0 t1 c1 w1 b1 p1 a1 n1 l1 stored elapsed syncs written_all taken_all
  until writer=$(status writer_pid) && [ -n "$writer" ]; do sleep 1; done
  sampler=$(pid_of 'tacho sampler')
  collector=$(pid_of 'pg_wait_sampling collector') ash_pid=$(pid_of ash)
  t0=$(status ticks_taken) c0=$(cpu_us "$sampler") w0=$(cpu_us "$writer") b0=$(written "$writer")
  p0=$(cpu_us "${collector:-self}") a0=$(cpu_us "${ash_pid:-self}") n0=$(ash_ticks) l0=$(wal)
  elapsed=${EPOCHREALTIME/[.,]/}
  sleep "$seconds"
  t1=$(status ticks_taken) c1=$(cpu_us "$sampler") w1=$(cpu_us "$writer") b1=$(written "$writer")
  p1=$(cpu_us "${collector:-self}") a1=$(cpu_us "${ash_pid:-self}") n1=$(ash_ticks) l1=$(wal)
  elapsed=$(((${EPOCHREALTIME/[.,]/} - elapsed) / 1000)) # in ms
  syncs=$(fdatasyncs "$writer")
  jobs -p | xargs -r kill 2>/dev/null || true
  wait 2>/dev/null || true
  written_all=$(written "$writer") taken_all=$(status ticks_taken)
  stop "$name"
  start "$name" # the next writer seals what this one left
  until [ -n "$(find "$BENCH_DIR/$name/tacho" -name '*.tape')" ]; do sleep 0.2; done
  stored=$(find "$BENCH_DIR/$name/tacho" -name '*.tape' -printf '%s\n' | awk '{ s += $1 } END { print s }')
  stop "$name"
  per "tacho sampler" $((t1 - t0)) $((c1 - c0))
  per "tacho writer" $((t1 - t0)) $((w1 - w0)) "$(((b1 - b0) / (t1 - t0)))"
  [ -z "$collector" ] || per "pg_wait_sampling" $((elapsed / ms)) $((p1 - p0))
  [ -z "$ash_pid" ] || per "pg_ash (a backend's loop)" $((n1 - n0)) $((a1 - a0)) "$(((l1 - l0) / (n1 - n0))) of WAL"
  notes+=("- $interval, $active active: $((written_all / taken_all)) bytes written, $((stored / taken_all)) stored a tick, ratio $((written_all / stored)); $syncs calls of fdatasync a flush interval")
}

bench_install
bench_package pg-wait-sampling || say "pg_wait_sampling: not to be had, left out"
ulimit -n 8192
notes=()
echo "# Cost of a tick"
echo
environment
echo "- command: \`bench/tick_cost.sh$spin -t $seconds${ash:+ -a ash-install.sql}\`"
echo "- budgets with 50 and 500 active: 250 and 2,000 µs a tick of the sampler; sampler and writer 3.6 and 18 s of CPU an hour at 1 s. Bytes written are at most 60 times the bytes stored, with one fdatasync a flush interval"
echo
echo "| process | interval | active | ticks | µs a tick | CPU s per hour | bytes written per tick |"
echo "|---|---|--:|--:|--:|--:|--:|"
for interval in $intervals; do
  for active in $actives; do measure; done
done
echo
printf '%s\n' "${notes[@]}"
