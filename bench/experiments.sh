#!/usr/bin/env bash
# usage: bench/experiments.sh [-o DIR] SCENARIO [ARGUMENT]...
#
# Runs `tacho bench SCENARIO ARGUMENT...` on a private copy of PG_CONFIG's
# PostgreSQL with tacho in it. Variants whose packages apt does not have
# are left out and named. The scenario history also measures the SQL
# edition, and pg_ash for each installer that ASH_SQL names. The report
# goes to bench/results/bench-SCENARIO.md, all results to DIR/SCENARIO
# (default: a new directory under /var/tmp). An existing DIR/SCENARIO is
# continued.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

output=
while getopts o: option; do
  case $option in
    o) output=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "error: no scenario" >&2; exit 2; }
trap bench_cleanup EXIT
bench_install
bench_peers
output=${output:-$(mktemp -d /var/tmp/tacho-results.XXXXXX)}

# experiment SCENARIO [ARGUMENT...]
experiment() {
  say "== $1"
  "$TACHO_PROGRAM" bench "$@" --skip-missing --pg-bin "$bin" --scratch "$BENCH_DIR" --output "$output/$1"
  # a reader has no use for the paths of this run
  local arguments=("${@//"$top/"/}")
  for ((n = 0; n < $#; n++)); do [[ ${arguments[n]} != /* ]] || arguments[n]=${arguments[n]##*/}; done
  sed "s|^- command: .*|- command: \`tacho bench ${arguments[*]}\`|" "$output/$1/report.md" >"$here/results/bench-$1.md"
}

peers=()
case $1 in
  history)
    peers=(--edition "$top/sql/tacho.sql")
    for file in ${ASH_SQL:-}; do peers+=(--pg-ash "$file"); done
    ;;
  recording)
    for file in ${ASH_SQL:-}; do peers=(--pg-ash "$file"); done # the newest comes last
    ;;
esac
experiment "$@" "${peers[@]}"
say "results: $output"
