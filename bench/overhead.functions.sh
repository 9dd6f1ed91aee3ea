# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of overhead.sh
# Functions of overhead.sh; sourced, not run: CPU time of a whole server,
# settings of a variant, and what ratios say. Uses of it: processes (by server),
# preload, ash.

# tree SERVER: its processes and theirs; cpu SERVER: their CPU time in µs,
# those that have ended included
tree() {
  local postmaster children
  postmaster=$(sed -n 1p "$BENCH_DIR/$1/postmaster.pid")
  children=$(pgrep -d, -P "$postmaster")
  echo "$postmaster"
  tr , '\n' <<<"$children"
  pgrep -P "$children" || true
}
cpu() {
  tree "$1" | sed 's,.*,/proc/&/stat,' | xargs cat 2>/dev/null |
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); s += $12 + $13 + $14 + $15 } END { printf "%.0f\n", s * 1e6 / tick }'
}
# quiet SERVER: once its client backends have ended and were counted
quiet() { until [ "$(tree "$1" | wc -l)" -le "${processes[$1]}" ]; do sleep 0.02; done; }

# settings VARIANT: what a reload switches; fails if it cannot be had
settings() {
  local interval=60s track=none profile=86400000
  case $1 in
    1s | 10ms) interval=$1 ;;
    all) interval=1s track=top ;;
    pg_wait_sampling) [ "$preload" != tacho ] && profile=10 ;;
    pg_ash) [ -n "$ash" ] ;;
  esac || return 1
  echo "tacho.sample_interval = $interval"
  echo "tacho.statements_track = $track"
  [ "$interval" != 60s ] || printf 'tacho.%s\n' 'query_text = off' 'server_interval = 0' 'statements_interval = 0'
  [ "$preload" = tacho ] || printf 'pg_wait_sampling.%s_period = %s\n' history $profile profile $profile
}

# ratios SCRIPT VARIANT COLUMN: to the same rounds of "off", sorted
ratios() {
  paste -d' ' "$BENCH_DIR/$1.$2" "$BENCH_DIR/$1.off" | awk -v c="$3" '{ printf "%.4f\n", $c / $(c + 3) }' | sort -n
}

# interval KIND BUDGET: "median (low to high)" of sorted numbers, and what
# follows for a budget: a largest ratio, or, with KIND = least, a smallest one
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

# budget COLUMN VARIANT SCRIPT: TPS of CPU-bound sessions is one by CPU time
budget() {
  case $1-$2 in
    1-1s | 1-all) echo 1.0101 ;;
    1-10ms) echo 1.0309 ;;
    2-1s | 2-all) [ "$3" != select-only ] || echo 0.99 ;;
    2-10ms) [ "$3" != select-only ] || echo 0.97 ;;
    3-1s | 3-10ms | 3-all) echo 1.02 ;;
  esac
}
