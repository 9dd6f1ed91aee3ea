# shellcheck shell=bash disable=SC2154 # set by lib.sh and the scripts
# Functions of the benchmarks of statements: variants and their accounts.
# Sourced after bench/lib.sh, not run. $scenarios names the file of workloads.

# field WORKLOAD N: a field of the file of workloads
field() { awk -v name="$1" -v n="$2" '$1 == name { print $n }' "$scenarios"; }

# workload NAME: its script, from a file here or from the scenario churn
workload() {
  local file=$here/statements/$1.sql
  if [ ! -e "$file" ]; then
    file=$BENCH_DIR/$1.sql
    awk -v name="name = \"$(field "$1" 5)\"" '$0 == name { found = 1 } found && /^"""/ { exit }
      inside { print } found && /^script = / { inside = 1 }' "$here/scenarios/churn.toml" |
      sed 's/\\\\/\\/g' >"$file"
  fi
  echo "$file"
}

settings() { # VARIANT MAX
  local contrib="pg_stat_statements.max = $2"
  case $1 in
    none) ;;
    pgss) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements'" "$contrib" ;;
    kcache) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements, pg_stat_kcache'" "$contrib" ;;
    wait) printf '%s\n' "shared_preload_libraries = 'pg_stat_statements, pg_stat_kcache, pg_wait_sampling'" "$contrib" ;;
    tacho) with_tacho 1s; printf '%s\n' "tacho.statements_max = $2" "tacho.statements_max_reserved = $2" ;;
    dropin) settings tacho "$2"; echo "tacho.pg_stat_statements = on" ;;
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
  case $1 in
    tacho) sql -c 'CREATE EXTENSION tacho' postgres ;;
    dropin) sql -c 'CREATE EXTENSION tacho' -c 'SELECT tacho.install_pg_stat_statements()' postgres >/dev/null ;;
    *) sql -c 'CREATE EXTENSION pg_stat_statements' postgres ;;
  esac
  stop "$1"
}

# Compares the statistics with EXECUTED statements since their reset, which is one of
# them: unaccounted and skipped executions, hot statements kept, share of executions in
# these.
account() { # VARIANT EXECUTED HOT
  local other='0' v
  v=$(view "$1")
  [ "$1" != tacho ] || other='(SELECT skipped FROM tacho.statements_info)'
  sql -F ' ' postgres -c "
    SELECT sum(calls) + $other - 1 - $2, $other,
           count(*) FILTER (WHERE query ~* '^with hot'),
           round(100.0 * coalesce(sum(calls) FILTER (WHERE query ~* '^with hot'), 0) / $2, 2)
      FROM $v" |
    awk -v v="$1" -v executed="$2" -v hot="$3" '{ printf "| %s | %d | %d | %d | %d of %d | %s %% |\n", v, executed, $1, $2, $3, hot, $4 }'
}

# CPU time in us of the server's ended backends; waits until only the backend that reads
# the view is left
backends_us() { # VARIANT
  local alone="SELECT count(*) FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND application_name <> 'poller'"
  until [ "$(PGOPTIONS='-c pg_stat_statements.track=none -c tacho.statements_track=none' \
    sql -c "$alone" postgres)" = 1 ]; do sleep 0.1; done
  awk -v hz="$(getconf CLK_TCK)" '{ printf "%d", ($16 + $17) * 1e6 / hz }' "/proc/$(head -n 1 "$BENCH_DIR/$1/postmaster.pid")/stat"
}

# measure VARIANT: runs $pgbench, at $tps if that is set. Prints transactions, TPS, us
# of CPU per transaction; with a rate also p99, p99.9 and worst latency in ms
measure() {
  local log="$BENCH_DIR/log.$1" out n before options=()
  rm -f "$log".*
  [ -z "$tps" ] || options=(-R "$tps" -l "--log-prefix=$log")
  before=$(backends_us "$1")
  out=$("${pgbench[@]}" "${options[@]}" postgres 2>/dev/null)
  n=$(awk '/actually processed/ { print $6 }' <<<"$out")
  awk -v n="$n" -v us=$(($(backends_us "$1") - before)) '/^tps/ { printf "%d %s %.2f", n, $3, us / n }' <<<"$out"
  [ -z "$tps" ] || cat "$log".* | awk '{ print $3 }' | sort -n |
    awk '{ v[NR] = $1 / 1000 } END { printf " %.3f %.3f %.3f", v[int(NR * 0.99)], v[int(NR * 0.999)], v[NR] }'
  echo
}

# The same while a session reads the whole view every $poll seconds.
measure_polled() { # VARIANT
  local poller
  if [ "$1" = none ]; then measure "$1"; return; fi
  # kill ends psql itself; the loop then writes to a closed pipe and ends, too
  PGAPPNAME=poller "$bin/psql" -XAtq -v ON_ERROR_STOP=1 -h "$BENCH_DIR/run" -p "$port" -U postgres postgres \
    < <(while sleep "$poll"; do echo "COPY (TABLE $(view "$1")) TO STDOUT;"; done) \
    >/dev/null 2>"$BENCH_DIR/poller" &
  poller=$!
  measure "$1"
  if ! kill "$poller" 2>/dev/null; then
    say "error: $1: reading the view ended early: $(<"$BENCH_DIR/poller")"
    exit 1
  fi
  wait "$poller" 2>/dev/null || true
}

# PERCENT of the highest TPS without statistics.
share_of_possible() { # WORKLOAD CLIENTS PERCENT
  local tps='' pgbench=(bench_pgbench -n -M simple -f "$(workload "$1")" -c "$2" -j "$jobs" -T "$seconds")
  [ -d "$BENCH_DIR/none" ] || prepare none 0
  start none
  measure none | awk -v percent="$3" '{ print int($2 * percent / 100) }'
  stop none
}

latencies() { # VARIANT...: columns of results from 3 on: p99, p99.9, worst, twice
  local v first
  echo "| variant | p99 ms | p99.9 ms | worst ms | worst of all |${poll:+ polled: p99 ms | p99.9 ms | worst ms | worst of all |}"
  echo "|---|--:|--:|--:|--:|${poll:+--:|--:|--:|--:|}"
  for v; do
    printf '| %s |' "$v"
    for first in 3 ${poll:+8}; do
      printf ' %.2f |' "$(column "$v" "$first" | median)" "$(column "$v" $((first + 1)) | median)" \
        "$(column "$v" $((first + 2)) | median)" "$(column "$v" $((first + 2)) | sort -n | tail -n 1)"
    done
    echo
  done
}

# Unpacks the peers of $variants, and removes variants without packages.
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
