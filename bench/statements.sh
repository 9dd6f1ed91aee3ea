#!/usr/bin/env bash
# Cost of counting statements, compared with peers, and exactness of the counts: pgbench
# with the workloads of bench/statements/scenarios.
#
# usage: bench/statements.sh [-w WORKLOADS] [-v VARIANTS] [-c CLIENTS]
#          [-k CORES] [-m MAX] [-r ROUNDS] [-t SECONDS] [-R RATE [-p SECONDS]]
#
#   -w  workloads, default "churn churn_20 select1"; all: every one in the file.
#   -v  variants, default "none pgss kcache wait tacho": nothing,
#       pg_stat_statements, with pg_stat_kcache, with pg_wait_sampling as well,
#       all of tacho.
#   -c  numbers of clients, default 32; "64 256" measures both.
#   -k  numbers of cores that server and clients share, default all of them.
#   -m  most entries, instead of the workload's; "5000 100000" measures both.
#   -R  measures latencies at this number of transactions a second; 55% means 55 %
#       of the highest rate without statistics, which is measured first.
#   -p  repeats it at that rate while the whole view is read every SECONDS.
#
# Variants run interleaved in rounds, in rotating order, each on a cluster of its own. A
# warm-up of the same length fills the statistics before each run. Prints medians of the
# ratios to the run without statistics of the same round, and the range of the ratios.
# With -R it prints medians of latencies and the worst latency. Then it compares the
# statistics of the last round with the executions. Peers come from Debian's packages,
# unpacked into the scratch directory. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/statements/lib.sh
source "$here/statements/lib.sh"

workloads="churn churn_20 select1" variants="none pgss kcache wait tacho" clients=32
cores=$(nproc) max='' rounds=5 seconds=10 rate='' poll=''
command="bench/statements.sh $(printf '%s\n' "$@" | sed 's/.* .*/"&"/' | paste -sd' ')"
while getopts w:v:c:k:m:r:t:R:p: option; do
  case $option in
    w) workloads=$OPTARG ;;
    v) variants=$OPTARG ;;
    c) clients=$OPTARG ;;
    k) cores=$OPTARG ;;
    m) max=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) seconds=$OPTARG ;;
    R) rate=$OPTARG ;;
    p) poll=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
scenarios=$here/statements/scenarios
[ "$workloads" != all ] || workloads=$(sed -n 's/^\([a-z][^ ]*\).*/\1/p' "$scenarios" | paste -sd' ')
trap bench_cleanup EXIT
bench_install
keep_available

# run VARIANT WORKLOAD CLIENTS: TPS, us of CPU per transaction; with a rate also p99,
# p99.9 and worst latency in ms, and the same while the view is polled
run() {
  local reset warm n
  reset="$(view "$1" | sed 's/^tacho.*/tacho.statements/')_reset()"
  pgbench=(bench_pgbench -n -M simple -f "$(workload "$2")" -c "$3" -j "$jobs" -T "$seconds")
  [ "$1" = none ] || sql -c "SELECT $reset" postgres >/dev/null
  warm=$("${pgbench[@]}" postgres 2>/dev/null | awk '/actually processed/ { print $6 }')
  measure "$1" >"$BENCH_DIR/measured"
  n=$(cut -d' ' -f1 "$BENCH_DIR/measured")
  if [ "$1" != none ]; then
    account "$1" $(((warm + n) * $(field "$2" 2))) "$(field "$2" 4)" >"$BENCH_DIR/account.$1"
  fi
  [ -z "$poll" ] || measure_polled "$1" >>"$BENCH_DIR/measured"
  cut -d' ' -f2- "$BENCH_DIR/measured" | paste -sd' '
}

section() { # WORKLOAD CLIENTS CORES MAX
  local w=$1 c=$2 k=$3 limit=$4 v n all round tps=$rate
  read -ra all <<<"$variants"
  jobs=$((c < k ? c : k)) pin=(taskset -c "0-$((k - 1))")
  for v in "${all[@]}"; do prepare "$v" "$limit"; : >"$BENCH_DIR/result.$v"; done
  [[ $rate != *% ]] || tps=$(share_of_possible "$w" "$c" "${rate%\%}")
  for round in $(seq "$rounds"); do
    for n in "${!all[@]}"; do
      v=${all[(n + round) % ${#all[@]}]}
      start "$v"
      run "$v" "$w" "$c" >>"$BENCH_DIR/result.$v"
      stop "$v"
      say "$w, $c clients, $k cores, at most $limit, round $round of $rounds, $v: $(tail -n 1 "$BENCH_DIR/result.$v")"
    done
  done
  printf '\n## %s, %d clients, %d cores, at most %d entries%s\n\n' "$w" "$c" "$k" "$limit" "${tps:+, $tps transactions a second}"
  if [ -n "$tps" ]; then latencies "${all[@]}"; else rates "${all[@]}"; fi
  accounts "${all[@]}"
  for v in "${all[@]}"; do rm -rf "${BENCH_DIR:?}/$v" "$BENCH_DIR/account.$v"; done
}

# column VARIANT N; ratios VARIANT BASE N: one per round; span: their range
column() { cut -d' ' -f"$2" "$BENCH_DIR/result.$1"; }
ratios() { paste -d' ' <(column "$1" "$3") <(column "$2" "$3") | awk '{ printf "%.3f\n", $1 / $2 }' | sort -n; }
span() { sed -n '1p;$p' | paste -sd' ' | sed 's/ /–/'; }

rates() { # VARIANT...: the first is what the others are compared with
  local v
  echo "| variant | TPS (median) | TPS ratio to $1 (range) | CPU µs a transaction | CPU ratio to $1 (range) |"
  echo "|---|--:|--:|--:|--:|"
  for v; do
    printf '| %s | %.0f | %.3f (%s) | %.1f | %.3f (%s) |\n' "$v" "$(column "$v" 1 | median)" \
      "$(ratios "$v" "$1" 1 | median)" "$(ratios "$v" "$1" 1 | span)" "$(column "$v" 2 | median)" \
      "$(ratios "$v" "$1" 2 | median)" "$(ratios "$v" "$1" 2 | span)"
  done
}

accounts() { # VARIANT...: exactness, of the last round
  local v
  printf '\n| variant | executed | unaccounted for | skipped | hot statements kept | calls in them |\n'
  echo "|---|--:|--:|--:|--:|--:|"
  for v; do [ ! -s "$BENCH_DIR/account.$v" ] || cat "$BENCH_DIR/account.$v"; done
}

if [ -z "$rate" ]; then echo "# What counting statements costs"; else echo "# Latency at a rate below saturation"; fi
echo
environment
echo "- command: \`$command\`"
for w in $workloads; do
  for k in $cores; do
    for c in $clients; do
      for m in ${max:-$(field "$w" 3)}; do section "$w" "$c" "$k" "$m"; done
    done
  done
done
cat "$here/statements/reading.md"
[ -n "$rate" ] || cat "$here/statements/tried.md"
