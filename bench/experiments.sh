#!/usr/bin/env bash
# usage: bench/experiments.sh [-o DIR] [SCENARIO [ARGUMENT]...]
#
# Runs `tacho bench SCENARIO ARGUMENT...` on a private copy of PG_CONFIG's
# PostgreSQL with tacho in it; without a scenario all of them, small. What a
# variant needs and apt does not have is left out and named; pg_ash takes part in
# the history for each installer that ASH_SQL names. Reports go to
# bench/results/bench-SCENARIO.md, all results to DIR (default: a new directory
# under /var/tmp).
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

output=
while getopts o: option; do
  case $option in
    o) output=$OPTARG ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
trap bench_cleanup EXIT
bench_install
for package in pg-stat-kcache pg-wait-sampling; do
  bench_package "$package" || say "$package is not packaged here"
done
output=${output:-$(mktemp -d /var/tmp/tacho-results.XXXXXX)}

# experiment SCENARIO [ARGUMENT...]
experiment() {
  say "== $1"
  "$TACHO_PROGRAM" bench "$@" --skip-missing --pg-bin "$bin" --scratch "$BENCH_DIR" --output "$output/$1"
  # the paths of this run mean nothing to a reader
  local arguments=("${@//"$top/"/}")
  for ((n = 0; n < $#; n++)); do [[ ${arguments[n]} != /* ]] || arguments[n]=${arguments[n]##*/}; done
  sed "s|^- command: .*|- command: \`tacho bench ${arguments[*]}\`|" "$output/$1/report.md" >"$here/results/bench-$1.md"
}

if [ $# -gt 0 ]; then
  experiment "$@"
else
  for each in overhead churn analyze codec; do experiment "$each"; done
  peers=()
  for file in ${ASH_SQL:-}; do peers+=(--pg-ash "$file"); done
  experiment history --edition "$top/sql/tacho.sql" "${peers[@]}"
fi
say "results: $output"
