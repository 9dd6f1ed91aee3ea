#!/usr/bin/env bash
# Cost of reading the statistics, their memory, and the system calls of an execution;
# compared with pg_stat_statements.
#
# usage: bench/statements_costs.sh [-e ENTRIES] [-n READS]
#
#   -e  numbers of entries, default "5000 100000"
#   -n  number of reads of each view, default 5; medians are printed
#
# Each statement of the load has its own entry and a text of 75 bytes. Memory is the
# reserved shared memory; for pg_stat_statements without the file of its texts. Markdown
# on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/statements/lib.sh
source "$here/statements/lib.sh"

entries="5000 100000" reads=5
while getopts e:n: option; do
  case $option in
    e) entries=$OPTARG ;;
    n) reads=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
bench_install
variants="pgss kcache tacho"
keep_available

fill() { # VARIANT N: so many entries
  seq "$2" | sed 's/.*/WITH statement_number_&_of_many AS (SELECT 1) SELECT FROM statement_number_&_of_many;/' |
    sql postgres >/dev/null
}

# Median times of reading the whole view, in ms: CPU time of the backend, and time until
# the client has all rows.
read_ms() { # QUERY
  for _ in $(seq "$reads"); do
    sql postgres <<<"SELECT pg_backend_pid() AS pid \\gset
\\setenv SESSION :pid
\\! cut -d' ' -f1 /proc/\$SESSION/schedstat
\\timing on
\\o /dev/null
$1;
\\o
\\! cut -d' ' -f1 /proc/\$SESSION/schedstat" |
      awk '/^Time/ { wall = $2; next } { cpu = $1 - before; before = $1 } END { print cpu / 1e6, wall }'
  done >"$BENCH_DIR/read_ms"
  for field in 1 2; do cut -d' ' -f$field "$BENCH_DIR/read_ms" | median; done | paste -sd' '
}

# Shared memory of the names that match a pattern, in kB.
shared_kb() { sql -c "SELECT (sum(allocated_size) / 1024)::bigint FROM pg_shmem_allocations WHERE name LIKE '$1'" postgres; }

# Most shared memory of the statistics and their texts, in kB. The memory of
# pg_stat_statements has no name of its own.
reserved_kb() { # VARIANT
  if [ "$1" = pgss ]; then echo "$(($(shared_kb %) - without_kb))"
  else shared_kb 'tacho statements%'; fi
}

# System calls of 1,000 executions of SELECT 1, without those that talk to the client:
# their number depends on chance.
calls_of() { # VARIANT SETTING
  local out=$BENCH_DIR/strace.$1 session
  coproc session_of { sql postgres; }
  echo "$2 SELECT pg_backend_pid();" >&"${session_of[1]}"
  read -r session <&"${session_of[0]}"
  for _ in $(seq 200); do echo "SELECT 1;" >&"${session_of[1]}"; read -r _ <&"${session_of[0]}"; done
  strace -qq -c -o "$out" -p "$session" 2>/dev/null &
  until grep -q '^TracerPid:[^0-9]*[1-9]' "/proc/$session/status"; do sleep 0.1; done
  for _ in $(seq 1000); do echo "SELECT 1;" >&"${session_of[1]}"; read -r _ <&"${session_of[0]}"; done
  echo '\q' >&"${session_of[1]}"
  wait %% 2>/dev/null || true
  awk '$4 ~ /^[0-9]+$/ && $NF !~ /^(total|sendto|recvfrom|epoll_wait)$/ { n += $4 } END { print n + 0 }' "$out"
}

echo "# What the statistics of statements cost to keep and to look at"
echo
environment
echo "- command: \`bench/statements_costs.sh -e \"$entries\" -n $reads\`"
prepare none 100
start none
without_kb=$(shared_kb %)
stop none
rm -rf "${BENCH_DIR:?}/none"
printf '\n| entries | variant | query | CPU ms (median) | ms at the client | memory reserved MiB |\n|--:|---|---|--:|--:|--:|\n'
for n in $entries; do
  for v in pgss dropin tacho; do
    prepare "$v" $((n + n / 10 + 100))
    [ "$v" = pgss ] || printf '%s\n' "tacho.query_text_memory_reserved = 128MB" \
      "tacho.query_text_memory = 128MB" >>"$BENCH_DIR/$v/postgresql.conf"
    start "$v"
    fill "$v" "$n"
    reserved=$(reserved_kb "$v")
    queries=("TABLE $(view "$v")" "SELECT * FROM $(view "$v")(false)" "SELECT count(*), sum(calls) FROM $(view "$v")")
    for q in "${queries[@]}"; do
      read -r cpu wall < <(read_ms "$q")
      # shellcheck disable=SC2016 # Markdown
      printf '| %d | %s | `%s` | %.1f | %.1f | %.1f |\n' "$n" "$v" "$q" "$cpu" "$wall" "$(awk -v kb="$reserved" 'BEGIN { print kb / 1024 }')"
    done
    stop "$v"
    rm -rf "${BENCH_DIR:?}/$v"
  done
done

command -v strace >/dev/null || { say "strace is not installed: no system calls counted"; variants=; }
[ -z "$variants" ] || printf '\n| variant | system calls of a SELECT 1 beside the protocol |\n|---|--:|\n'
for v in ${variants:+none} $variants; do
  prepare "$v" 5000
  start "$v"
  printf '| %s | %.3f |\n' "$v" "$(calls_of "$v" "" | awk '{ print $1 / 1000 }')"
  [ "$v" != tacho ] || printf '| tacho, every execution measured | %.3f |\n' \
    "$(calls_of "$v" "SET tacho.statements_cpu = always;" | awk '{ print $1 / 1000 }')"
  stop "$v"
  rm -rf "${BENCH_DIR:?}/$v"
done
cat "$here/statements/costs.md"
