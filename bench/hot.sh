#!/usr/bin/env bash
# usage: bench/hot.sh [-b COMMIT] [-r ROUNDS] [-t TRANSACTIONS] [-m "MAJOR..."]
#
# The scenario hot of `tacho bench`, written to bench/results/hot.md. It measures the CPU of a
# fixed number of transactions (-t, default 64000, a multiple of 32) and the share of each
# library. It runs ROUNDS (default 7) times on each MAJOR (default "15 18"; tools/pg-major.sh
# provides it). With -b it also measures the extension of an earlier commit on the first
# MAJOR: each round measures one and then the other. Twelve minutes on an idle machine. perf
# must be installed here; it is copied into the roots of other majors.
set -euo pipefail

before='' rounds=7 transactions=64000 majors="15 18" inside=''
while getopts b:r:t:m:i: option; do
  case $option in
    b) before=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) transactions=$OPTARG ;;
    m) majors=$OPTARG ;;
    i) inside=$OPTARG ;; # used by this script: measure beside this server, results to DIR
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
export TACHO_PROGRAM
trap bench_cleanup EXIT

# once SIDE ROUND VARIANTS: one round
once() {
  "$TACHO_PROGRAM" bench "$inside/hot.toml" --rounds 1 --scale 1 --skip-missing \
    --workloads "select-only,5k,100k" --variants "$3" --pg-bin "${bins[$1]}" \
    --scratch "$BENCH_DIR" --output "$inside/$1.$2" >&2
}

# together SIDE: joins its rounds into one experiment
together() {
  local round
  mkdir "$inside/$1"
  sed "s/\"rounds\": 1,/\"rounds\": $rounds,/" "$inside/$1.1/experiment.json" >"$inside/$1/experiment.json"
  for round in $(seq "$rounds"); do
    sed "s/\"round\":[0-9]*/\"round\":$round/" "$inside/$1.$round/runs.jsonl"
  done >"$inside/$1/runs.jsonl"
  cp "$inside/$1.1/servers.jsonl" "$inside/$1/"
}

measure() {
  local side round
  declare -gA bins
  PATH=$inside/../perf:$PATH
  bench_install
  bins[now]=$bin
  if [ -e "$inside/before" ]; then
    mkdir -p "$BENCH_DIR/earlier"
    bins[before]=$("$inside/before/tools/stage.sh" "$BENCH_DIR/earlier" 2>/dev/null)
    bins[before]=${bins[before]%/*}
    rm -rf "$inside/before"
  fi
  chmod -R go+rX "$BENCH_DIR"
  local orders=("none,pg_stat_statements,tacho" "pg_stat_statements,tacho,none" "tacho,none,pg_stat_statements")
  for round in $(seq "$rounds"); do
    # each variant has each place equally often, and each side is first in every other round
    local sides=("now ${orders[(round - 1) % 3]}")
    if [ -n "${bins[before]:-}" ]; then
      if ((round % 2)); then sides=("before tacho" "${sides[@]}"); else sides+=("before tacho"); fi
    fi
    for side in "${sides[@]}"; do once "${side% *}" "$round" "${side#* }"; done
  done
  for side in "${!bins[@]}"; do together "$side"; done
  "$TACHO_PROGRAM" bench report "$inside/now" >&2
  sed '1d;s/^#/##/;/^- command/d' "$inside/now/report.md"
  [ -z "${bins[before]:-}" ] || {
    printf '\n### Before (A) and now (B)\n\n'
    "$TACHO_PROGRAM" bench compare "$inside/before" "$inside/now" |
      grep -E '^\|( point| -|.* (CPU (per|in)|\.\.\. and)[^|]* \|)'
  }
}

if [ -n "$inside" ]; then measure >"$inside/report.md"; exit; fi

# perf and its libraries, for roots that do not have it
perf_elsewhere() { # DIR
  mkdir -p "$1/lib"
  cp -L "$(command -v perf)" "$1/perf.here"
  ldd "$1/perf.here" | grep -o '/[^ ]*' | xargs -I{} cp -L {} "$1/lib/"
  printf '#!/bin/sh\nexec %s/lib/ld-linux-*.so.* --library-path %s/lib %s/perf.here "$@"\n' "$1" "$1" "$1" >"$1/perf"
  chmod 755 "$1/perf"
}

results=$(mktemp -d /var/tmp/tacho-results.XXXXXX)
chmod 755 "$results"
perf_elsewhere "$results/perf"
page=$results/hot.md
{
  echo "# Hot path: CPU of the same work, share of the library"
  echo
  echo "- date: $(date -u +%F), commit $(git -C "$top" rev-parse --short HEAD)${before:+, before: $(git -C "$top" rev-parse --short "$before")}"
  echo "- command: \`bench/hot.sh${before:+ -b COMMIT} -r $rounds -t $transactions\`"
} >"$page"
for major in $majors; do
  mkdir "$results/$major"
  sed "s/^transactions = .*/transactions = $transactions/" "$here/scenarios/hot.toml" >"$results/$major/hot.toml"
  if [ -n "$before" ]; then
    mkdir "$results/$major/before"
    git -C "$top" archive "$before" extension catalog tools conformance sql dashboards | tar -C "$results/$major/before" -xf -
    before=
  fi
  say "== PostgreSQL $major"
  "$top/tools/in-pg.sh" -b "${TACHO_PROGRAM%/*}" -w "$results" "$major" \
    "$here/hot.sh" -i "$results/$major" -r "$rounds"
  { printf '\n## PostgreSQL %s\n' "$major"; cat "$results/$major/report.md"; } >>"$page"
done
sed -n '/^<!-- kept /,$p' "$here/results/hot.md" >>"$page" 2>/dev/null || true
cp "$page" "$here/results/hot.md"
say "results: $results"
