#!/usr/bin/env bash
# How long questions about the history take, from an hour to a year.
#
# usage: bench/history.sh [-d DAYS]... [-s]   (build first: cargo build --release -p tacho,
#        cargo build --release -p tacho-tape --features testing --examples)
#
# Makes the uniform, the skewed and the churn day and, for each -d, DAYS uniform days
# (default 30; 365 are the budget's year and take 2.4 GB) and asks on the command
# line: median wall time of 5, best CPU time, warm; once cold, with the files
# dropped from the page cache; and the most memory the reader had. With -s also
# through SQL on a server of PG_CONFIG, clock of psql. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

days=() server=''
while getopts d:s option; do
  case $option in
    d) days+=("$OPTARG") ;;
    s) server=1 ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
examples=$(dirname "$TACHO_PROGRAM")/examples
end=2026-03-03T00:00:00Z
[ ${#days[@]} -gt 0 ] || days=(30)
declare -A window=([hour]=3600 [day]=86400) node=()

# data NAME SET [DAYS]: a tape of a made-up day, or of many. A server that reads
# it adds a node of its own: questions name the one of the data.
data() {
  "$examples/dataset" "$2" | "$TACHO_PROGRAM" import sessions - --tape "$BENCH_DIR/$1" >&2
  [ -z "${3:-}" ] || "$examples/year" "$BENCH_DIR/$1" "$3"
  node[$1]=$("$TACHO_PROGRAM" status --json --tape "$BENCH_DIR/$1" |
    sed -n 's/.*"metric": "node", "value": "\([^"]*\)".*/\1/p')
}

cool() { local f; for f in "$1"/*.tape; do dd if="$f" iflag=nocache count=0 status=none; done; }

# ask TAPE WINDOW FUNCTION ARG…: the question as the server asks it, whose
# default is ten keys.
ask() {
  local tape=$1 seconds=${window[$2]}
  shift 2
  ${launch:-} "$TACHO_PROGRAM" query "$1" --tape "$BENCH_DIR/$tape" --node="${node[$tape]}" --now $end --until $end \
    --since "$(date -u -d "@$(($(date -d $end +%s) - seconds))" +%FT%TZ)" --n=10 "${@:2}" >/dev/null
}

# peak TAPE WINDOW FUNCTION ARG…: KiB at its highest, looked at every 2 ms (a
# lower bound where an answer takes no longer), without the shell before it.
peak() {
  local pid kib='' now
  (launch='exec'; ask "$@") & pid=$!
  while now=$(awk -v program="${TACHO_PROGRAM##*/}" '/^Name:/ { its = $2 == program }
    /^VmHWM:/ { print its ? $2 : 0 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
    kib=$now; sleep 0.002
  done
  wait "$pid" || true
  echo "${kib/#0/–}"
}

# timed COMMAND…: wall and CPU ms.
timed() {
  local TIMEFORMAT='%R %U %S'
  { time "$@" 2>/dev/null; } 2>&1 | awk '{printf "%.0f %.0f\n", $1 * 1000, ($2 + $3) * 1000}'
}

# through SQL: ms by the clock of psql, median of 5 after one to warm up.
sql_ms() {
  { echo "$1;"; printf '%s\n' '\timing on'; for _ in 1 2 3 4 5; do echo "$1;"; done; } |
    sql postgres | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | median
}

# row TITLE TAPE WINDOW BUDGET_MS FUNCTION ARG…
row() {
  local title=$1 tape=$2 name=$3 budget=$4 cold wall cpu in_sql=''
  shift 4
  cool "$BENCH_DIR/$tape"
  cold=$(timed ask "$tape" "$name" "$@" | cut -d' ' -f1)
  for _ in 1 2 3 4 5; do timed ask "$tape" "$name" "$@"; done > "$BENCH_DIR/runs"
  wall=$(cut -d' ' -f1 "$BENCH_DIR/runs" | median) cpu=$(cut -d' ' -f2 "$BENCH_DIR/runs" | sort -n | head -1)
  [ -z "$server" ] || in_sql=$(sql_ms "$(statement "$tape" "$name" "$@")")
  printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$title" "$cold" "$wall" "$cpu" "${in_sql:--}" "$budget" \
    "$(awk -v t="${in_sql:-$wall}" -v b="$budget" 'BEGIN {printf "%.2f", t / b}')" "$(peak "$tape" "$name" "$@")"
}

# statement TAPE WINDOW FUNCTION --ARG=VALUE…: the same in SQL.
statement() {
  local tape=$1 seconds=${window[$2]} function=$3 text arg
  shift 3
  text="SELECT count(*) FROM tacho.$function(until => '$end', since => timestamptz '$end' - interval '$seconds s'"
  text+=", node => '${node[$tape]}'"
  for arg in "$@"; do
    arg=${arg#--}
    text+=", $(tr - _ <<< "${arg%%=*}") => '${arg#*=}'"
  done
  echo "$text)"
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

questions() { # TAPE
  local id
  id=$("$TACHO_PROGRAM" query top --dimension=query_id --n=1 --tape "$BENCH_DIR/$1" --node="${node[$1]}" \
    --now $end --until $end | sed -n 2p | cut -f1)
  row "$1, 1 h, top wait_event" "$1" hour 5 top --dimension=wait_event
  row "$1, 24 h, top wait_event" "$1" day 12 top --dimension=wait_event
  row "$1, 24 h, top query_id" "$1" day 12 top --dimension=query_id
  row "$1, 24 h, top wait_event_type" "$1" day 12 top --dimension=wait_event_type
  row "$1, 24 h, top wait_event of a query" "$1" day 40 top --dimension=wait_event --query-id="$id"
  row "$1, 24 h, top query_id of a wait" "$1" day 40 top --dimension=query_id --wait-event=IO:DataFileRead
  row "$1, 24 h, top pid" "$1" day 40 top --dimension=pid
  row "$1, 24 h, top wait_event by query_id" "$1" day 40 top --dimension=wait_event --by=query_id
}

[ -z "$server" ] || bench_install
mkdir -p "$BENCH_DIR"
chmod 755 "$BENCH_DIR"
bin=${bin:-$("${PG_CONFIG:-pg_config}" --bindir)}
for set in uniform skewed churn; do data "$set" "$set"; done
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
for d in "${days[@]}"; do
  serve "many$d"
  row "$d days, of these 1 h, top wait_event" "many$d" hour 5 top --dimension=wait_event
  row "$d days, top wait_event with peak and p99" "many$d" "$d" $((300 * d / 365)) top --dimension=wait_event
  row "$d days, top wait_event of one session" "many$d" "$d" $((8000 * d / 365)) top --dimension=wait_event --pid=1007
  unserve "many$d"
done
