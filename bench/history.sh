#!/usr/bin/env bash
# Time of questions about the history, from an hour to a year.
#
# usage: bench/history.sh [-d DAYS]... [-s]   (build first: cargo build --release -p tacho,
#        cargo build --release -p tacho-tape --features testing --examples)
#
# Makes the uniform, the skewed and the churn day. For each -d it also makes DAYS uniform
# days (default 30; 365 are the budget's year and take 2.4 GB). Asks on the command line.
# Prints the median wall time of 5 warm questions and their best CPU time. Prints the wall
# time of one cold question, with the files dropped from the page cache, and the peak
# memory of the reader. With -s it also asks through SQL on a server of PG_CONFIG, by the
# clock of psql. With RECORDED=DIR, made by bench/record.sh, it also asks about the last
# hour there. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/history.functions.sh
source "$(dirname "$0")/history.functions.sh"

days=() server=''
while getopts d:s option; do
  case $option in
    d) days+=("$OPTARG") ;;
    s) server=1 ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
examples=$(dirname "$TACHO_PROGRAM")/examples
end=2026-03-03T00:00:00Z
[ ${#days[@]} -gt 0 ] || days=(30)
declare -A window=([hour]=3600 [day]=86400) node=() ends=()

# data NAME SET [DAYS]: a tape of one made-up day, or of many. A server that reads it
# adds its own node, so questions name the node of the data.
data() {
  "$examples/dataset" "$2" | "$TACHO_PROGRAM" import sessions - --tape "$BENCH_DIR/$1" >&2
  [ -z "${3:-}" ] || "$examples/year" "$BENCH_DIR/$1" "$3"
  node[$1]=$(status "$1" node) ends[$1]=$end
}

# recorded: a copy of the recorded history; its window ends with its last tick.
recorded() {
  cp -R "$RECORDED" "$BENCH_DIR/recorded"
  node[recorded]=$(status recorded node)
  ends[recorded]=$(date -u -d "$(status recorded last_tick_time) + 1 second" +%FT%TZ)
}

# serve TAPE: a server that reads this tape (and records next to nothing).
serve() {
  [ -n "$server" ] || return 0
  [ "$(id -u)" != 0 ] || chown -R "$("$top/tools/as-server.sh" --user)" "$BENCH_DIR/$1"
  bench_cluster "server-$1" "shared_preload_libraries = 'tacho'" "tacho.directory = '$BENCH_DIR/$1'" \
    'tacho.sample_interval = 60s' 'tacho.retention_age = 0' 'tacho.retention_size = 0'
  start "server-$1"
  sql -c 'CREATE EXTENSION tacho' postgres
}
unserve() { [ -z "$server" ] || stop "server-$1"; }

questions() { # TAPE [WINDOW WORD]
  local id span=${2:-day} word=${3:-24 h}
  id=$("$TACHO_PROGRAM" query top --dimension=query_id --n=1 --tape "$BENCH_DIR/$1" --node="${node[$1]}" \
    --now "${ends[$1]}" --until "${ends[$1]}" | sed -n 2p | cut -f1)
  row "$1, 1 h, top wait_event" "$1" hour 5 top --dimension=wait_event
  [ "$span" = hour ] || row "$1, $word, top wait_event" "$1" "$span" 12 top --dimension=wait_event
  row "$1, $word, top query_id" "$1" "$span" 12 top --dimension=query_id
  row "$1, $word, top wait_event_type" "$1" "$span" 12 top --dimension=wait_event_type
  row "$1, $word, top wait_event of a query" "$1" "$span" 40 top --dimension=wait_event --query-id="$id"
  row "$1, $word, top query_id of a wait" "$1" "$span" 40 top --dimension=query_id --wait-event=IO:DataFileRead
  row "$1, $word, top pid" "$1" "$span" 40 top --dimension=pid
  row "$1, $word, top wait_event by query_id" "$1" "$span" 40 top --dimension=wait_event --by=query_id
}

[ -z "$server" ] || bench_install
mkdir -p "$BENCH_DIR"
chmod 755 "$BENCH_DIR"
bin=${bin:-$("${PG_CONFIG:-pg_config}" --bindir)}
for set in uniform skewed churn; do data "$set" "$set"; done
[ -z "${RECORDED:-}" ] || recorded
for d in "${days[@]}"; do window[$d]=$((d * 86400)); data "many$d" uniform "$d"; done
echo "# Reading the history"
echo
environment
echo "- load average $(cut -d' ' -f1 /proc/loadavg); command: \`bench/history.sh$(printf ' -d %s' "${days[@]}")${server:+ -s}\`"
echo "- uniform, skewed, churn: the days of [sizes.md](sizes.md); days: uniform ones,$(
  for d in "${days[@]}"; do printf ' %s of %s MiB' "$d" "$(du -sm "$BENCH_DIR/many$d" | cut -f1)"; done)"
echo
echo "| Question | cold ms | warm ms | CPU ms | SQL ms | budget ms | ratio | peak KiB |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|"
for set in uniform skewed churn; do serve "$set"; questions "$set"; unserve "$set"; done
if [ -n "${RECORDED:-}" ]; then
  serve recorded
  questions recorded hour '1 h'
  unserve recorded
fi
for d in "${days[@]}"; do
  serve "many$d"
  row "$d days, of these 1 h, top wait_event" "many$d" hour 5 top --dimension=wait_event
  row "$d days, top wait_event with peak and p99" "many$d" "$d" $((300 * d / 365)) top --dimension=wait_event
  row "$d days, top wait_event of one session" "many$d" "$d" $((8000 * d / 365)) top --dimension=wait_event --pid=1007
  unserve "many$d"
done
