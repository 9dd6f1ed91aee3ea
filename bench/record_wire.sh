#!/usr/bin/env bash
# Question: should tacho record read the constant columns of a session only once, and a hash
# of them from then on? Would that cost less?
#
# usage: bench/record_wire.sh [-t TICKS] [-n "ACTIVE..."]
#
# 1,000 connections, 50 or 500 of them active. The query of a tick is taken from a running
# recorder. It is run TICKS times (400) unchanged, and with a hash in place of start,
# database, role, application, address, type and leader. The two alternate every twenty
# ticks, each in a session of its own. Prints for each session the bytes that it received
# (ss) and the CPU time of its backend (/proc/PID/schedstat). Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/tick_cost.functions.sh
source "$here/tick_cost.functions.sh"

ticks=400 actives='50 500'
while getopts t:n: option; do
  case $option in
    t) ticks=$OPTARG ;;
    n) actives=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
bench_recorder
trap 'jobs -p | xargs -r kill 2>/dev/null || true; bench_cleanup' EXIT

# ask NAME QUESTION: a session that runs it twenty times for each line it gets
declare -A to from client backend question
ask() {
  local into out
  mkfifo "$BENCH_DIR/$active.$1.in" "$BENCH_DIR/$active.$1.out"
  question[$1]=${2//;/ \\;}';'
  PGAPPNAME=$1 "$bin/psql" -XAtq -h 127.0.0.1 -p "$port" -U watcher postgres \
    <"$BENCH_DIR/$active.$1.in" >"$BENCH_DIR/$active.$1.out" &
  client[$1]=$!
  exec {into}>"$BENCH_DIR/$active.$1.in" {out}<"$BENCH_DIR/$active.$1.out"
  to[$1]=$into from[$1]=$out
  twenty "$1" # warm memory and catalog caches
  backend[$1]=$(pid_of "$1")
}
twenty() {
  local i
  for ((i = 0; i < 20; i++)); do printf '\\o /dev/null\n%s\n' "${question[$1]}"; done >&"${to[$1]}"
  printf '\\o\n\\echo asked\n' >&"${to[$1]}"
  read -r -u "${from[$1]}"
}
received() { ss -tinpH | grep -A1 "pid=${client[$1]}," | grep -o 'bytes_received:[0-9]*' | cut -d: -f2; }

# The query of a tick, from a running recorder.
asked_by_recorder() {
  local found=
  "$recorder" "host=127.0.0.1 port=$port dbname=postgres user=watcher" --tape "$BENCH_DIR/tape.$active" \
    --interval 100 --server-interval 0 --no-texts 2>"$BENCH_DIR/recorder.log" &
  until found=$(sql -c "SELECT query FROM pg_stat_activity WHERE application_name = 'tacho record'
      AND query LIKE '%as idle_count%'" postgres) && [ -n "$found" ]; do sleep 0.1; done
  kill $!
  wait $! || true
  printf '%s\n' "$found"
}

measure() {
  local name="w$active" asked head rest same i each
  bench_cluster "$name" "listen_addresses = '127.0.0.1'" 'track_activity_query_size = 16kB'
  start "$name"
  sql -c 'CREATE ROLE watcher LOGIN' -c 'GRANT pg_monitor TO watcher' postgres
  start_loads
  asked=$(asked_by_recorder)
  head=${asked%%select pid, *} rest=${asked#*select pid, }
  same=${rest%%, state, wait_event_type*} rest=${rest#*, leader_pid}
  [[ $asked == *"select pid, $same, state, wait_event_type"* ]] || { say 'error: the question of a tick is another one'; exit 1; }
  ask whole "$asked"
  ask hash "${head}select pid, hash_record_extended(row(backend_start, datid, usesysid, application_name, \
client_port, client_addr, backend_type, leader_pid), 0)${rest/null, null, null, null, null, null, backend_type, null,/null, hashtextextended(backend_type, 0),}"
  local -A c b
  for each in whole hash; do c[$each]=$(cpu_us "${backend[$each]}") b[$each]=$(received "$each"); done
  for ((i = 0; i < ticks; i += 20)); do twenty whole; twenty hash; done
  for each in whole hash; do
    awk -v a="$active" -v n="$each" -v t="$ticks" -v b=$(($(received "$each") - b[$each])) \
      -v c=$(($(cpu_us "${backend[$each]}") - c[$each])) \
      'BEGIN { printf "| %d of 1,000 | %s | %.1f KiB | %d |\n", a, n, b / t / 1024, c / t }'
    kill "${client[$each]}"
  done
  jobs -p | xargs -r kill 2>/dev/null || true
  wait 2>/dev/null || true
  stop "$name"
}

bench_install
ulimit -n 8192
environment
echo "- load average $(cut -d' ' -f1-3 /proc/loadavg) at the begin"
echo "- command: \`bench/record_wire.sh -t $ticks\`"
echo
echo "| active | what does not change | received a tick | µs of the server's CPU a tick |"
echo "|---|---|--:|--:|"
for active in $actives; do measure; done
