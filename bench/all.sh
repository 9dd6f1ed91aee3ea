#!/usr/bin/env bash
# usage: bench/all.sh [-c DIR] [PART...]
#
# Measures everything and refreshes bench/results, with the most telling
# parts first; with PARTs only those. At the end it prints the time of each
# part and whether it ended well. A part that fails keeps its old result,
# and the other parts run. Raw data and the parts' messages go to a
# directory under /var/tmp. After Ctrl-C or a failure, -c with that
# directory continues: it skips parts that ended well, and scenarios keep
# their runs.
set -euo pipefail

# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
trap bench_cleanup EXIT
export -n BENCH_DIR # each part has its own
scenarios=(overhead churn hot recording history codec analyze instructions lines plans)
scripts=(tick_cost statements_latency statements locks statements_costs messages sql_edition sizes)

dir=
while getopts c: option; do
  case $option in
    c) dir=$(realpath "$OPTARG") ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
parts=("$@")
[ $# -gt 0 ] || parts=("${scenarios[@]}" "${scripts[@]}")
known=" ${scenarios[*]} ${scripts[*]} "
for part in "${parts[@]}"; do
  [[ "$known" = *" $part "* ]] || { echo "error: no part \"$part\": one of$known" >&2; exit 2; }
done
dir=${dir:-$(mktemp -d /var/tmp/tacho-results.XXXXXX)}
chmod 755 "$dir"
mkdir -p "$here/results"
# the programs of a part have ended by then
trap 'echo "interrupted; go on with: bench/all.sh -c $dir" >&2; exit 130' INT TERM

script() { # PART: runs its script, with arguments that limit it to some minutes
  case $1 in
    statements) "$here/statements.sh" -r 3 -t 5 ;;
    statements_latency) "$here/statements.sh" -w churn -m "5000 100000" -R 55% -p 2 -r 2 -t 6 ;;
    *) "$here/$1.sh" ;;
  esac
}

measure() { # PART
  if [[ " ${scenarios[*]} " = *" $1 "* ]]; then
    "$here/experiments.sh" -o "$dir" "$1"
  else
    script "$1" >"$dir/$1.md" || return
    sed -n '/^<!-- kept /,$p' "$here/results/$1.md" >>"$dir/$1.md" # what people wrote
    cp "$dir/$1.md" "$here/results/$1.md"
  fi
}

# one installation for all parts
bench_install
bench_peers
export BENCH_BIN=$bin TACHO_PROGRAM

failed=0
summary=
for part in "${parts[@]}"; do
  if [ -e "$dir/$part.done" ]; then
    summary+="$part: measured before"$'\n'
    continue
  fi
  echo "== $part, $(date +%H:%M:%S)" >&2
  SECONDS=0
  if measure "$part" 2>&1 >/dev/null | tee -i "$dir/$part.log" >&2; then
    touch "$dir/$part.done"
    word=measured
  else
    failed=1
    word="FAILED: $(tail -n 1 "$dir/$part.log")"
  fi
  summary+=$(printf '%s: %d:%02d min, %s' "$part" $((SECONDS / 60)) $((SECONDS % 60)) "$word")$'\n'
done
printf '\n%sresults: %s\n' "$summary" "$dir" >&2
[ $failed = 0 ] || echo "go on with: bench/all.sh -c $dir" >&2
exit $failed
