# shellcheck shell=bash disable=SC2154 # set by lib.sh and history.sh
# Asking questions and timing them: functions of history.sh; sourced, not run.

# status TAPE METRIC
status() {
  "$TACHO_PROGRAM" status --json --tape "$BENCH_DIR/$1" |
    sed -n "s/.*\"metric\": \"$2\", \"value\": \"\([^\"]*\)\".*/\1/p"
}

# since TAPE WINDOW: when the window begins.
since() { date -u -d "@$(($(date -d "${ends[$1]}" +%s) - window[$2]))" +%FT%TZ; }

# cool TAPE: drops its files from the page cache.
cool() {
  find "$BENCH_DIR/$1" \( -name '*.tape' -o -name '*.open' \) -exec dd if={} iflag=nocache count=0 status=none \;
}

# ask TAPE FUNCTION ARG…: asks a question from $from on, in the form of the server,
# whose default is ten keys.
ask() {
  local tape=$1
  shift
  ${launch:-} "$TACHO_PROGRAM" query "$1" --tape "$BENCH_DIR/$tape" --node="${node[$tape]}" \
    --now "${ends[$tape]}" --until "${ends[$tape]}" --since "$from" --n=10 "${@:2}" >/dev/null
}

# peak TAPE FUNCTION ARG…: highest memory in KiB, read every 2 ms (a lower bound for
# shorter answers), without the shell that starts the program.
peak() {
  local pid kib=0 now
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
  local title=$1 tape=$2 from budget=$4 cold wall cpu in_sql=''
  from=$(since "$2" "$3")
  shift 4
  cool "$tape"
  cold=$(timed ask "$tape" "$@" | cut -d' ' -f1)
  for _ in 1 2 3 4 5; do timed ask "$tape" "$@"; done > "$BENCH_DIR/runs"
  wall=$(cut -d' ' -f1 "$BENCH_DIR/runs" | median) cpu=$(cut -d' ' -f2 "$BENCH_DIR/runs" | sort -n | head -1)
  [ -z "$server" ] || in_sql=$(sql_ms "$(statement "$tape" "$@")")
  printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$title" "$cold" "$wall" "$cpu" "${in_sql:--}" "$budget" \
    "$(awk -v t="${in_sql:-$wall}" -v b="$budget" 'BEGIN {printf "%.2f", t / b}')" "$(peak "$tape" "$@")"
}

# statement TAPE FUNCTION --ARG=VALUE…: the same in SQL.
statement() {
  local tape=$1 function=$2 text arg
  shift 2
  text="SELECT count(*) FROM tacho.$function(until => '${ends[$tape]}', since => '$from'"
  text+=", node => '${node[$tape]}'"
  for arg in "$@"; do
    arg=${arg#--}
    text+=", $(tr - _ <<< "${arg%%=*}") => '${arg#*=}'"
  done
  echo "$text)"
}
