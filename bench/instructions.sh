#!/usr/bin/env bash
# Instructions of one statement, simple protocol: none, query identifiers
# alone, tacho, pg_stat_statements, and with pg_stat_kcache and
# pg_wait_sampling where they are packaged. Single-user server under callgrind, so no
# other process disturbs, and the numbers repeat to a few instructions.
#
# usage: bench/instructions.sh [-n STATEMENTS] [-w WORKLOADS]
#
#   -w  default "select1 new". select1: `SELECT 1`. new: each statement is one
#       that was never seen, and another one is evicted for it (of 500 at most)
#
# Per variant two runs, of n and of 3 n statements after equal preparation; the
# difference divided by 2 n is the cost of one. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

n=1000 workloads="select1 new"
while getopts n:w: option; do
  case $option in
    n) n=$OPTARG ;;
    w) workloads=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
command -v valgrind >/dev/null || { say "error: could not find valgrind"; exit 1; }
trap bench_cleanup EXIT
bench_install

declare -A settings=(
  [none]="compute_query_id=off"
  [query_id]="compute_query_id=on"
  [tacho]="shared_preload_libraries=tacho compute_query_id=on tacho.statements_cpu=sampled"
  [tacho_cpu_off]="shared_preload_libraries=tacho compute_query_id=on tacho.statements_cpu=off"
  [tacho_cpu_always]="shared_preload_libraries=tacho compute_query_id=on tacho.statements_cpu=always"
  [tacho_off]="shared_preload_libraries=tacho compute_query_id=on tacho.statements=off"
  [pg_stat_statements]="shared_preload_libraries=pg_stat_statements compute_query_id=on"
)
variants=(none query_id tacho_off tacho_cpu_off tacho tacho_cpu_always pg_stat_statements)
if bench_package pg-stat-kcache; then
  settings[with_kcache]="shared_preload_libraries=pg_stat_statements,pg_stat_kcache compute_query_id=on"
  variants+=(with_kcache)
fi
if bench_package pg-wait-sampling; then
  settings[with_wait_sampling]="shared_preload_libraries=pg_stat_statements,pg_stat_kcache,pg_wait_sampling compute_query_id=on"
  variants+=(with_wait_sampling)
fi

# title, and entries at most
declare -A titles=([select1]="SELECT 1" [new]="A new statement")
declare -A limits=([select1]=5000 [new]=500)

statements() { # WORKLOAD N
  case $1 in
    select1) { yes "SELECT 1;" || true; } | head -n "$2" ;;
    new) seq "$2" | sed 's/.*/WITH cold& AS (SELECT 1) SELECT FROM cold&;/' ;;
  esac
}

# run WORKLOAD VARIANT STATEMENTS: instructions of a whole run
run() {
  local options=() each out=$BENCH_DIR/callgrind.$2 limit=${limits[$1]}
  for each in ${settings[$2]}; do options+=(-c "$each"); done
  [[ "${settings[$2]}" != *"=tacho "* ]] || options+=(-c "tacho.statements_max=$limit")
  [[ "${settings[$2]}" != *"=pg_stat_statements"* ]] || options+=(-c "pg_stat_statements.max=$limit")
  statements "$1" "$3" >"$BENCH_DIR/statements.sql"
  (cd "$BENCH_DIR" && as_server valgrind --tool=callgrind --callgrind-out-file="$out" \
    "$bin/postgres" --single -D "$BENCH_DIR/data" -c tacho.program=/nonexistent "${options[@]}" postgres \
    <"$BENCH_DIR/statements.sql" >/dev/null 2>"$out.log")
  sed -n 's/^summary: \([0-9]*\).*/\1/p;s/^totals: \([0-9]*\).*/\1/p' "$out" | head -1
}

section() { # WORKLOAD
  local v few many
  declare -A cost
  for v in "${variants[@]}"; do
    few=$(run "$1" "$v" "$n")
    many=$(run "$1" "$v" $((3 * n)))
    cost[$v]=$(((many - few) / (2 * n)))
    say "$1, $v: ${cost[$v]}"
  done
  printf '\n## %s\n\n' "${titles[$1]}"
  echo "| variant | instructions | beyond query identifiers |"
  echo "|---|--:|--:|"
  for v in "${variants[@]}"; do
    echo "| $v | ${cost[$v]} | $((cost[$v] - cost[query_id])) |"
  done
}

bench_cluster data
echo "# Instructions of a statement"
echo
environment
for w in $workloads; do section "$w"; done
