# shellcheck shell=bash
# Functions of the benchmarks of statements: variants and their accounts.
# Sourced after bench/lib.sh, not run. $scenarios names the file of workloads.

# field WORKLOAD N: of the file of scenarios
field() { awk -v name="$1" -v n="$2" '$1 == name { print $n }' "$scenarios"; }

settings() { # VARIANT MAX
  local contrib="pg_stat_statements.max = $2"
  case $1 in
    none) ;;
    pgss) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements'" "$contrib" ;;
    kcache) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements, pg_stat_kcache'" "$contrib" ;;
    wait) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements, pg_stat_kcache, pg_wait_sampling'" "$contrib" ;;
    tacho) with_tacho 1s; printf '%s\n' "tacho.statements_max = $2" "tacho.statements_max_reserved = $2" ;;
    *) say "error: no variant \"$1\""; exit 2 ;;
  esac
}

view() { [ "$1" = tacho ] && echo tacho.statements || echo pg_stat_statements; }

prepare() { # VARIANT MAX: a cluster with the statistics' objects
  local lines
  mapfile -t lines < <(settings "$1" "$2")
  bench_cluster "$1" "${lines[@]}"
  [ "$1" != none ] || return 0
  start "$1"
  if [ "$1" = tacho ]; then sql -c 'CREATE EXTENSION tacho' postgres
  else sql -c 'CREATE EXTENSION pg_stat_statements' postgres; fi
  stop "$1"
}

# What the statistics hold of EXECUTED statements since their reset, which is
# one of them: all, entries, hot statements, share of executions in these.
account() { # VARIANT EXECUTED HOT
  local other='0' v
  v=$(view "$1")
  [ "$1" != tacho ] || other='(SELECT skipped FROM tacho.statements_info)'
  sql -F ' ' postgres -c "
    SELECT sum(calls) + $other - 1 - $2, $other,
           count(*) FILTER (WHERE query ~ '^WITH hot'),
           round(100.0 * coalesce(sum(calls) FILTER (WHERE query ~ '^WITH hot'), 0) / $2, 2)
      FROM $v" |
    awk -v v="$1" -v executed="$2" -v hot="$3" '{ printf "| %s | %d | %d | %d | %d of %d | %s %% |\n", v, executed, $1, $2, $3, hot, $4 }'
}

# Unpacks the peers that $variants asks for, and leaves out those there are no
# packages of.
keep_available() {
  local v kept=()
  for v in $variants; do
    case $v in
      kcache) bench_package pg-stat-kcache || v= ;;
      wait) { bench_package pg-stat-kcache && bench_package pg-wait-sampling; } || v= ;;
    esac
    [ -z "$v" ] || kept+=("$v")
  done
  [ "${#kept[@]}" = "$(wc -w <<<"$variants")" ] || say "not all peers are packaged here: ${kept[*]}"
  variants=${kept[*]}
}
