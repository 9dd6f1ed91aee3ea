#!/usr/bin/env bash
# Cost of tacho record for the server that it records.
#
# usage: bench/record_cost.sh [-t SECONDS] [-a ASH_SQL] [-n "ACTIVE..."]
#
# 1,000 connections, 50 or 500 of them active, as in tick_cost.sh. First a recorder runs
# with only its tick, once a second for SECONDS (40), then one with all its questions.
# For each the script measures the CPU time of the backend that answers
# (/proc/PID/schedstat). It measures the bytes that the recorder received and sent (ss,
# over TCP), and the cluster's WAL and temporary files in that time. Then three samplers
# run among the same sessions, each in its own loop: the extension's, take_sample() of
# the SQL edition and take_sample() of pg_ash. pg_ash takes part if -a or ASH_SQL names
# its SQL. sql_edition.sh measures the bytes they write. Markdown on standard output;
# exit 1 if a tick of the recorder costs the server more than one of pg_ash.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/tick_cost.functions.sh
source "$here/tick_cost.functions.sh"

seconds=40 ash=${ASH_SQL:-} actives='50 500'
ash=${ash##* } # if several are named, the last one, which is the newest
while getopts t:a:n: option; do
  case $option in
    t) seconds=$OPTARG ;;
    a) ash=$(realpath "$OPTARG") ;;
    n) actives=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
bench_recorder
trap 'jobs -p | xargs -r kill 2>/dev/null || true; bench_cleanup' EXIT

row() { printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$active of 1,000" "$@"; }
of() { awk "BEGIN { printf \"$1\", $2 }"; }
temp() { sql -c "SELECT sum(temp_files) FROM pg_stat_database" postgres; }
# bytes that the socket of a process has received and sent, by the kernel's count
bytes() { ss -tinpH 2>/dev/null | grep -A1 "pid=$1," | tr ' ' '\n' | sed -n 's/^bytes_received:/r /p; s/^bytes_sent:/s /p' | awk '{ n[$1] += $2 } END { print n["r"] + 0, n["s"] + 0 }'; }

# record NAME ARGUMENT…: a row for a recorder
record() {
  local name=$1 tape=$BENCH_DIR/tape.$active.$RANDOM pid backend c0 c1 b0 b1 w0 w1 f0 f1 n0 n1
  shift
  "$recorder" "host=127.0.0.1 port=$port dbname=postgres user=watcher" --tape "$tape" "$@" 2>>"$BENCH_DIR/recorder.log" &
  pid=$!
  until backend=$(pid_of 'tacho record') && [ -n "$backend" ]; do sleep 0.2; done
  sleep 5
  ticks() { "$TACHO_PROGRAM" aas --tape "$tape" --since 1h --json | sed -n 's/.*"ticks_observed": \([0-9]*\).*/\1/p'; }
  n0=$(ticks) w0=$(wal) f0=$(temp) c0=$(cpu_us "$backend") b0=$(bytes "$pid")
  sleep "$seconds"
  c1=$(cpu_us "$backend") b1=$(bytes "$pid") n1=$(ticks) w1=$(wal) f1=$(temp)
  kill "$pid"
  wait "$pid"
  local ticks=$((n1 - n0)) us
  us=$(((c1 - c0) / ticks))
  [ "$name" != 'tacho record, ticks alone' ] || tick=$us
  row "$name" "$ticks" "$us" "$(of '%.1f, %.1f KiB' "(${b1% *} - ${b0% *}) / $ticks / 1024, (${b1#* } - ${b0#* }) / $ticks / 1024")" \
    "$(((w1 - w0) / ticks))" "$((f1 - f0))"
}

measure() {
  local name="r$active" settings tick loops=() sampler s0 t0 s1 t1 each
  mapfile -t settings < <(with_tacho 1s)
  bench_cluster "$name" "${settings[@]}" "shared_preload_libraries = 'tacho, pg_stat_statements'" \
    "listen_addresses = '127.0.0.1'" 'max_wal_senders = 0' 'wal_level = minimal'
  start "$name"
  sql -c 'CREATE EXTENSION tacho' -c 'CREATE EXTENSION pg_stat_statements' -c 'CREATE ROLE watcher LOGIN' \
    -c 'GRANT pg_monitor TO watcher' -c CHECKPOINT postgres
  start_loads
  sleep 5
  record 'tacho record, ticks alone' --server-interval 0 --statements-interval 3600000 --no-texts
  record 'tacho record, all its queries' --statements-interval 20000
  start_ash 1000
  [ -z "$ash" ] || loops+=(ash)
  sql -c 'CREATE DATABASE edition' postgres
  start_loop tacho "$top/sql/tacho.sql" 1000 edition
  # each call gets a slot of its own
  sql -c "UPDATE tacho.setting SET enabled = true, sample_interval = '10 milliseconds'" edition
  loops+=(tacho)
  sleep 5
  local -A db=([ash]=postgres [tacho]=edition) title=([ash]='pg_ash, take_sample()' [tacho]='SQL edition, take_sample()') n c
  sampler=$(pid_of 'tacho sampler')
  s0=$(cpu_us "$sampler") t0=$(sql -c "SELECT value FROM tacho.status() WHERE metric = 'ticks_taken'" postgres)
  for each in "${loops[@]}"; do n[$each]=$(loop_ticks "$each" "${db[$each]}") c[$each]=$(cpu_us "$(pid_of "$each")"); done
  sleep "$seconds"
  s1=$(cpu_us "$sampler") t1=$(sql -c "SELECT value FROM tacho.status() WHERE metric = 'ticks_taken'" postgres)
  row 'extension, sampler' $((t1 - t0)) $(((s1 - s0) / (t1 - t0))) – 0 0
  for each in "${loops[@]}"; do
    c[$each]=$(($(cpu_us "$(pid_of "$each")") - c[$each])) n[$each]=$(($(loop_ticks "$each" "${db[$each]}") - n[$each]))
    row "${title[$each]}" "${n[$each]}" $((c[$each] / n[$each])) – 'see there' –
  done
  [ -z "$ash" ] || [ "$tick" -le $((c[ash] / n[ash])) ] || misses=$((misses + 1))
  jobs -p | xargs -r kill 2>/dev/null || true
  wait 2>/dev/null || true
  stop "$name"
}

bench_install
ulimit -n 8192
misses=0
echo "# Cost of tacho record on the server"
echo
environment
echo "- load average $(cut -d' ' -f1-3 /proc/loadavg) at the begin"
echo "- command: \`bench/record_cost.sh -t $seconds${ash:+ -a $(basename "$ash")}\`"
echo "- budget: a tick cheaper than a tick of pg_ash, no WAL, no temporary files"
echo
echo "| active | process | ticks | µs of the server's CPU a tick | received, sent by the recorder a tick | bytes of WAL a tick | temporary files |"
echo "|---|---|--:|--:|--:|--:|--:|"
for active in $actives; do measure; done
[ "$misses" = 0 ]
