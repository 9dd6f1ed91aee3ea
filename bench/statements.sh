#!/usr/bin/env bash
# What counting statements costs, beside its peers, and whether the counts are
# exact: pgbench with the workloads of bench/statements/scenarios.
#
# usage: bench/statements.sh [-w WORKLOADS] [-v VARIANTS] [-c CLIENTS]
#          [-k CORES] [-m MAX] [-r ROUNDS] [-t SECONDS] [-R RATE]
#
#   -w  workloads, default "churn select1"; all: those of the file
#   -v  variants, default "none pgss kcache wait tacho": nothing,
#       pg_stat_statements, with pg_stat_kcache, with pg_wait_sampling as well,
#       all of tacho
#   -c  numbers of clients, default 32; "64 256" measures both
#   -k  numbers of cores that server and clients share, default all of them
#   -m  entries at most, instead of the workload's
#   -R  transactions a second instead of as many as possible: latencies
#
# Variants run interleaved in rounds, in turning order, on clusters of their
# own, each after a warm-up of as long, which fills the statistics. Printed are medians of the ratios to the run
# without statistics of the same round, and their range; then, of the last
# round, what the statistics know of what was executed. Peers come from
# Debian's packages, unpacked into the scratch directory. Markdown on standard
# output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/statements/lib.sh
source "$here/statements/lib.sh"

workloads="churn select1" variants="none pgss kcache wait tacho" clients=32
cores=$(nproc) max='' rounds=5 seconds=10 rate='' command="bench/statements.sh $*"
while getopts w:v:c:k:m:r:t:R: option; do
  case $option in
    w) workloads=$OPTARG ;;
    v) variants=$OPTARG ;;
    c) clients=$OPTARG ;;
    k) cores=$OPTARG ;;
    m) max=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) seconds=$OPTARG ;;
    R) rate=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
scenarios=$here/statements/scenarios
[ "$workloads" != all ] || workloads=$(sed -n 's/^\([a-z][^ ]*\).*/\1/p' "$scenarios" | paste -sd' ')
trap bench_cleanup EXIT
bench_install
keep_available

# CPU time of the server's ended backends in us, when all have ended
backends_us() { # VARIANT
  local alone="SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
  until [ "$(PGOPTIONS='-c pg_stat_statements.track=none -c tacho.statements_track=none' \
    sql -c "$alone" postgres)" = 1 ]; do sleep 0.1; done
  awk -v hz="$(getconf CLK_TCK)" '{ printf "%d", ($16 + $17) * 1e6 / hz }' "/proc/$(head -n 1 "$BENCH_DIR/$1/postmaster.pid")/stat"
}

# run VARIANT WORKLOAD CLIENTS: TPS, us of CPU a transaction; p99 and worst
# latency in ms if at a rate
run() {
  local log="$BENCH_DIR/log.$1" reset options=() out n warm before
  local pgbench=(bench_pgbench -n -M simple -f "$here/statements/$2.sql" -c "$3" -j "$jobs" -T "$seconds")
  reset="$(view "$1" | sed 's/^tacho.*/tacho.statements/')_reset()"
  [ -z "$rate" ] || options=(-R "$rate" -l "--log-prefix=$log")
  [ "$1" = none ] || sql -c "SELECT $reset" postgres >/dev/null
  warm=$("${pgbench[@]}" postgres 2>/dev/null | awk '/actually processed/ { print $6 }')
  rm -f "$log".*
  before=$(backends_us "$1")
  out=$("${pgbench[@]}" "${options[@]}" postgres 2>/dev/null)
  n=$(awk '/actually processed/ { print $6 }' <<<"$out")
  awk -v n="$n" -v us=$(($(backends_us "$1") - before)) '/^tps/ { printf "%s %.2f", $3, us / n }' <<<"$out"
  [ -z "$rate" ] || cat "$log".* | awk '{ print $3 }' | sort -n |
    awk '{ v[NR] = $1 } END { printf " %.3f %.3f", v[int(NR * 0.99)] / 1000, v[NR] / 1000 }'
  echo
  if [ "$1" != none ]; then
    account "$1" $(((warm + n) * $(field "$2" 2))) "$(field "$2" 4)" >"$BENCH_DIR/account.$1"
  fi
}

section() { # WORKLOAD CLIENTS CORES
  local w=$1 c=$2 k=$3 limit=${max:-$(field "$1" 3)} v n all round
  read -ra all <<<"$variants"
  jobs=$((c < k ? c : k)) pin=(taskset -c "0-$((k - 1))")
  for v in "${all[@]}"; do prepare "$v" "$limit"; : >"$BENCH_DIR/result.$v"; done
  for round in $(seq "$rounds"); do
    for n in "${!all[@]}"; do
      v=${all[(n + round) % ${#all[@]}]}
      start "$v"
      run "$v" "$w" "$c" >>"$BENCH_DIR/result.$v"
      stop "$v"
      say "$w, $c clients, $k cores, round $round of $rounds, $v: $(tail -n 1 "$BENCH_DIR/result.$v")"
    done
  done
  printf '\n## %s, %d clients, %d cores, at most %d entries\n\n' "$w" "$c" "$k" "$limit"
  rates "${all[@]}"
  accounts "${all[@]}"
  for v in "${all[@]}"; do rm -rf "${BENCH_DIR:?}/$v" "$BENCH_DIR/account.$v"; done
}

# column VARIANT N; ratios VARIANT BASE N: round by round; span: their range
column() { cut -d' ' -f"$2" "$BENCH_DIR/result.$1"; }
ratios() { paste -d' ' <(column "$1" "$3") <(column "$2" "$3") | awk '{ printf "%.3f\n", $1 / $2 }' | sort -n; }
span() { sed -n '1p;$p' | paste -sd' ' | sed 's/ /–/'; }

rates() { # VARIANT...: the first is what the others are compared with
  local v
  if [ -n "$rate" ]; then
    echo "| variant | p99 ms (median) | worst ms (median) | worst ms of all |"
    echo "|---|--:|--:|--:|"
    for v; do
      printf '| %s | %.2f | %.2f | %.2f |\n' "$v" "$(column "$v" 3 | median)" \
        "$(column "$v" 4 | median)" "$(column "$v" 4 | sort -n | tail -n 1)"
    done
    return
  fi
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

echo "# What counting statements costs"
echo
environment
echo "- command: \`$command\`"
for w in $workloads; do
  for k in $cores; do
    for c in $clients; do section "$w" "$c" "$k"; done
  done
done
cat "$here/statements/reading.md"
