#!/usr/bin/env bash
# What recording costs the server beside it: pgbench with and without.
#
# usage: bench/overhead.sh [-r ROUNDS] [-t SECONDS] [-c CLIENTS] [-a ASH_SQL] [-v "VARIANT..."]
#
# Variants: none; again (none once more: what differs here is noise); recording
# alone at 1 s and at 10 ms; all of tacho at 1 s, statistics of statements
# included; pg_wait_sampling at its 10 ms, if apt has it; pg_ash at 1 s,
# if -a or ASH_SQL names its SQL. All live in one installation with a running
# server each. Many short rounds, in each every variant once and in turning
# order, while the servers of the others are frozen (SIGSTOP); printed are
# medians of the ratios to the round's own run without, and the 95 % confidence
# interval of that median (order statistics, nothing assumed about the noise).
# As called: 5 minutes. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

rounds=14 seconds=1 clients=8 ash=${ASH_SQL:-} variants=(none again 1s 10ms all pg_wait_sampling pg_ash)
while getopts r:t:c:a:v: option; do
  case $option in
    r) rounds=$OPTARG ;;
    t) seconds=$OPTARG ;;
    c) clients=$OPTARG ;;
    a) ash=$(realpath "$OPTARG") ;;
    v) read -ra variants <<<"none $OPTARG" ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
trap 'thaw_all; jobs -p | xargs -r kill 2>/dev/null; bench_cleanup' EXIT

# signal_server SIGNAL VARIANT: to its postmaster, all children, and their own
signal_server() {
  local postmaster children
  postmaster=$(sed -n 1p "$BENCH_DIR/$2/postmaster.pid")
  children=$(pgrep -d, -P "$postmaster") # some may end before they are told
  { echo "$postmaster"; tr , '\n' <<<"$children"; pgrep -P "$children"; } | xargs kill -s "$1" 2>/dev/null || true
}
thaw_all() { for v in "${present[@]}"; do signal_server CONT "$v"; done; }

# as_variant VARIANT COMMAND...: the functions of lib.sh for its server
as_variant() { port=$((5544 + ${number[$1]})) "${@:2}"; }

# settings VARIANT: its lines of postgresql.conf; fails if it cannot be had
settings() {
  case $1 in
    none | again) ;;
    all) with_tacho 1s ;;
    pg_ash) [ -n "$ash" ] ;;
    pg_wait_sampling)
      [ -e "$("$bin/pg_config" --pkglibdir)/pg_wait_sampling.so" ] &&
        echo "shared_preload_libraries = 'pg_wait_sampling'" ;;
    *) with_tacho "$1" && echo "tacho.statements = off" ;;
  esac
}

# prepare VARIANT: its cluster
prepare() {
  local lines
  lines=$(settings "$1") || { say "$1: not here, left out"; return 0; }
  number[$1]=${#present[@]}
  as_variant "$1" bench_cluster "$1" "$lines" "shared_buffers = 256MB"
  start "$1"
  present+=("$1")
  as_variant "$1" bench_pgbench -i -q -s 10 postgres >/dev/null 2>&1
  if [ "$1" = pg_ash ]; then
    as_variant "$1" sql -f "$ash" postgres >/dev/null 2>&1
    as_variant "$1" sql -c 'DO $$ BEGIN LOOP PERFORM ash.take_sample(); COMMIT; PERFORM pg_sleep(1); END LOOP; END $$' postgres >/dev/null 2>&1 &
  fi
  as_variant "$1" load select-only 1 >/dev/null
  signal_server STOP "$1"
}

# load SCRIPT SECONDS OPTION...
load() { bench_pgbench -n -b "$1" -c "$clients" -j 2 -T "$2" "${@:3}" postgres 2>/dev/null; }

# run VARIANT SCRIPT: TPS and p99 latency in ms
run() {
  local log="$BENCH_DIR/log.$1"
  rm -f "$log".*
  signal_server CONT "$1"
  as_variant "$1" load "$2" "$seconds" -l --log-prefix="$log" | awk '/^tps/ {printf "%s ", $3}'
  signal_server STOP "$1"
  cat "$log".* | awk '{print $3}' | sort -n |
    awk '{v[NR]=$1} END {printf "%.3f\n", v[int(NR*0.99)]/1000}'
}

# ratios SCRIPT VARIANT COLUMN: to the same rounds without, sorted
ratios() {
  paste -d' ' "$BENCH_DIR/$1.$2" "$BENCH_DIR/$1.none" |
    awk -v c="$3" '{ printf "%.4f\n", $c / $(c + 2) }' | sort -n
}

# interval: "median (low to high)" of sorted numbers, and what follows for the
# budget $2: a least ratio, or, with $1 = most, a largest one
interval() {
  awk -v kind="$1" -v budget="$2" '{ v[NR] = $1 } END {
    k = int((NR - 1.96 * sqrt(NR)) / 2); if (k < 1) k = 1
    low = v[k]; high = v[NR + 1 - k]; m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
    word = low <= 1 && high >= 1 ? "not told from noise" : "differs"
    if (NR < 6) word = "too few rounds to tell"
    else if (budget != "") {
      good = kind == "most" ? high <= budget : low >= budget
      bad = kind == "most" ? low > budget : high < budget
      word = word (good ? ", budget held" : bad ? ", BUDGET MISSED" : ", budget undecided")
    }
    printf "%.3f (%.3f to %.3f) | %s", m, low, high, word }'
}

budget() { # VARIANT COLUMN
  case $1-$2 in
    1s-1 | all-1) echo 0.99 ;;
    10ms-1) echo 0.97 ;;
    1s-2 | 10ms-2 | all-2) echo 1.02 ;;
  esac
}

bench_install
bench_package pg-wait-sampling || true
present=()
declare -A number=()
for v in "${variants[@]}"; do prepare "$v"; done
for script in select-only tpcb-like; do
  for round in $(seq "$rounds"); do
    for n in "${!present[@]}"; do
      v=${present[(n + round) % ${#present[@]}]}
      run "$v" "$script" >>"$BENCH_DIR/$script.$v"
    done
    say "$script: round $round of $rounds"
  done
done

echo "# Cost of recording for the server beside it"
echo
environment
echo "- command: \`bench/overhead.sh -r $rounds -t $seconds -c $clients${ash:+ -a ash-install.sql}\`"
echo "- \`again\` is \`none\` once more: how far its interval reaches is the noise of this run; nothing smaller can be seen in it"
echo
echo "| pgbench | variant | measured | median | ratio, 95 % interval | so |"
echo "|---|---|---|--:|--:|---|"
for script in select-only tpcb-like; do
  for v in "${present[@]:1}"; do
    for c in 1 2; do
      kind=least what=TPS
      [ $c = 1 ] || kind=most what="p99 ms"
      printf '| %s | %s | %s | %s | %s |\n' "$script" "$v" "$what" \
        "$(cut -d' ' -f$c "$BENCH_DIR/$script.$v" | median)" "$(ratios "$script" "$v" $c | interval $kind "$(budget "$v" $c)")"
    done
  done
done
