#!/usr/bin/env bash
# What recording costs the server beside it: pgbench with and without.
#
# usage: bench/overhead.sh [-r ROUNDS] [-t SECONDS] [-c CLIENTS] [-a ASH_SQL] [-v "VARIANT..."]
#
# One running server, whose settings a reload switches between slices of
# SECONDS: off (a tick a minute, nothing else); again (off once more: what
# differs here is noise); recording alone at 1 s and at 10 ms; all of tacho at
# 1 s, statistics of statements included; pg_wait_sampling at its 10 ms, if apt
# has it; pg_ash at 1 s, if -a or ASH_SQL names its SQL. "unloaded" is a second
# server without any of the libraries: what their presence costs.
#
# In each round every variant does the same number of transactions, in turning
# order. Measured is the CPU time of all processes of the server for one
# transaction (sampler and writer included), which is far steadier than TPS;
# beside it TPS, and for TPC-B the 99th percentile of latency. Printed are
# medians of the ratios to the round's own "off", and the 95 % confidence
# interval of that median (order statistics, nothing assumed about the noise).
# As called: 8 minutes on an idle machine. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/overhead.functions.sh
source "$(dirname "$0")/overhead.functions.sh"

rounds=18 seconds=1 clients=8 ash=${ASH_SQL:-} variants=(off again 1s 10ms all pg_wait_sampling pg_ash unloaded)
while getopts r:t:c:a:v: option; do
  case $option in
    r) rounds=$OPTARG ;;
    t) seconds=$OPTARG ;;
    c) clients=$OPTARG ;;
    a) ash=$(realpath "$OPTARG") ;;
    v) read -ra variants <<<"off $OPTARG" ;;
    *) sed -n '2,22s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
trap 'jobs -p | xargs -r kill 2>/dev/null; bench_cleanup' EXIT

first_port=$port
server_of() { if [ "$1" = unloaded ]; then echo without; else echo with; fi; }
# on SERVER COMMAND...: the functions of lib.sh for "with" or "without"
on() { port=$((first_port + (${#1} > 4))) "${@:2}"; }

# switch VARIANT: and wait until the sampler goes by it
switch() {
  local ms=60000
  case $1 in 1s | all) ms=1000 ;; 10ms) ms=10 ;; esac
  settings "$1" >"$BENCH_DIR/with/variant.conf"
  on with sql -c 'SELECT pg_reload_conf()' postgres >/dev/null
  until [ "$(on with sql -c "SELECT value FROM tacho.status() WHERE metric = 'tick_interval_ms'" postgres)" = $ms ]; do sleep 0.05; done
}

ash_loop() { on with sql -c 'DO $$ BEGIN LOOP PERFORM ash.take_sample(); COMMIT; PERFORM pg_sleep(1); END LOOP; END $$' postgres >/dev/null 2>&1; }

# load SERVER SCRIPT OPTION...: pgbench's report
load() { on "$1" bench_pgbench -n -b "$2" -c "$clients" -j 2 "${@:3}" postgres 2>/dev/null; }

# slice VARIANT SCRIPT: CPU µs per transaction, TPS and, for TPC-B, p99 in ms
slice() {
  local server log="$BENCH_DIR/log.$1" before loop='' report options=()
  server=$(server_of "$1")
  [ "$server" = without ] || switch "$1"
  [ "$2" = select-only ] || options=(-l --log-prefix="$log")
  rm -f "$log".*
  quiet "$server"
  before=$(cpu "$server")
  if [ "$1" = pg_ash ]; then ash_loop & loop=$!; fi
  report=$(load "$server" "$2" -t "${each[$2]}" "${options[@]}")
  if [ -n "$loop" ]; then
    on with sql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^DO .*take_sample'" postgres >/dev/null
    wait "$loop" || true
  fi
  quiet "$server"
  awk -v cpu=$(($(cpu "$server") - before)) -v done=$((each[$2] * clients)) 'BEGIN { printf "%.3f ", cpu / done }'
  awk '/^tps/ { printf "%s ", $3 }' <<<"$report"
  if [ "$2" = select-only ]; then echo -; else
    cat "$log".* | awk '{ print $3 }' | sort -n | awk '{ v[NR] = $1 } END { printf "%.3f\n", v[int(NR * 0.99)] / 1000 }'
  fi
}

# prepare SERVER PRELOAD: its cluster, running
prepare() {
  local settings=("shared_buffers = 256MB" "shared_preload_libraries = '$2'")
  [ "$1" = without ] || settings+=("tacho.max_cpu = 0" "include_if_exists = 'variant.conf'")
  on "$1" bench_cluster "$1" "${settings[@]}"
  start "$1"
  on "$1" bench_pgbench -i -q -s 10 postgres >/dev/null 2>&1
}

bench_install
bench_package pg-wait-sampling || true
preload=tacho
[ ! -e "$("$bin/pg_config" --pkglibdir)/pg_wait_sampling.so" ] || preload=tacho,pg_wait_sampling
declare -A processes=() each=()
prepare with "$preload"
on with sql -c 'CREATE EXTENSION tacho' postgres
if [ -n "$ash" ]; then on with sql -f "$ash" postgres >/dev/null 2>&1; fi
present=()
for v in "${variants[@]}"; do
  if [ "$v" = unloaded ]; then prepare without ''; elif ! settings "$v" >/dev/null; then
    say "$v: not here, left out"
    continue
  fi
  present+=("$v")
done
sleep 3 # the sampler has its writer
for server in with without; do
  if [ -e "$BENCH_DIR/$server" ]; then processes[$server]=$(tree "$server" | wc -l); fi
done
for script in select-only tpcb-like; do
  switch off
  tps=$(load with "$script" -T 2 | awk '/^tps/ { printf "%d", $3 }')
  each[$script]=$((tps * seconds / clients + 1))
  if [ -e "$BENCH_DIR/without" ]; then load without "$script" -T 1 >/dev/null; fi
  for round in $(seq "$rounds"); do
    for n in "${!present[@]}"; do
      v=${present[(n + round) % ${#present[@]}]}
      on "$(server_of "$v")" sql -c 'VACUUM pgbench_branches, pgbench_tellers' postgres
      slice "$v" "$script" >>"$BENCH_DIR/$script.$v"
    done
    say "$script: round $round of $rounds"
  done
done

echo "# Cost of recording for the server beside it"
echo
environment
echo "- command: \`bench/overhead.sh -r $rounds -t $seconds -c $clients${ash:+ -a ash-install.sql}\`"
echo "- \`off\` and the variants are one server, switched by reload; \`again\` is \`off\` once more: how far its interval reaches is the noise of this run, and nothing smaller can be seen in it"
echo "- budgets: TPS of pgbench -S at least 0.99 at 1 s and 0.97 at 10 ms, for CPU per transaction at most their inverses, 1.010 and 1.031; p99 of TPC-B at most 1.02"
echo "- \`unloaded\` is another server without the libraries; it differs in its memory, too"
echo
echo "| pgbench | variant | measured | median | ratio to off, 95 % interval | so |"
echo "|---|---|---|--:|--:|---|"
names=('' 'CPU µs' TPS 'p99 ms') kinds=('' most least most)
for script in select-only tpcb-like; do
  for v in "${present[@]:1}"; do
    for c in 1 2 3; do
      [ "$c-$script" != 3-select-only ] || continue
      printf '| %s | %s | %s | %s | %s |\n' "$script" "$v" "${names[c]}" \
        "$(cut -d' ' -f$c "$BENCH_DIR/$script.$v" | median)" \
        "$(ratios "$script" "$v" $c | interval "${kinds[c]}" "$(budget $c "$v" "$script")")"
    done
  done
done
