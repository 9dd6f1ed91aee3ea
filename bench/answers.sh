#!/usr/bin/env bash
# Time of questions asked in process, on tapes that stay open.
#
# usage: bench/answers.sh [-d DAYS] [-m MINUTES] [-c TIMES]   (build first: cargo
#        build --release -p tacho -p tacho-bench, cargo build --release
#        -p tacho-tape --features testing --examples)
#
# Makes the uniform and the churn day, and DAYS uniform days (default 365, which take
# 2.4 GB), and asks with `tacho bench answers`: medians of 21, warm, two threads. With
# -m 10,000 mixed questions follow, spread over MINUTES; with -c each function is
# cancelled TIMES times, at random moments. Then measures the refresh of a year
# (examples/refresh.rs). Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

days=365 mixed=()
while getopts d:m:c: option; do
  case $option in
    d) days=$OPTARG ;;
    m) mixed+=(--minutes "$OPTARG") ;;
    c) mixed+=(--cancel "$OPTARG") ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
examples=$(dirname "$TACHO_PROGRAM")/examples

# data NAME SET: a tape of a made-up day.
data() {
  "$examples/dataset" "$2" | "$TACHO_PROGRAM" import sessions - --tape "$BENCH_DIR/$1" >&2
}

data day uniform
data churn churn
cp -R "$BENCH_DIR/day" "$BENCH_DIR/year"
"$examples/year" "$BENCH_DIR/year" "$days" >&2

echo '# Answers in process'
echo
echo "- date: $(date -u +%F), commit $(git -C "$top" rev-parse --short HEAD), load average $(cut -d' ' -f1 /proc/loadavg)"
echo "- command: \`bench/answers.sh -d $days${mixed[*]:+ ${mixed[*]}}\`"
echo "- day and churn: uniform and churn of [sizes.md](sizes.md); year: $days uniform days, $(du -sm "$BENCH_DIR/year" | cut -f1) MiB"
echo
"$(dirname "$TACHO_PROGRAM")/tacho-bench" answers --day "$BENCH_DIR/day" \
  --year "$BENCH_DIR/year" --churn "$BENCH_DIR/churn" "${mixed[@]}"
mkdir "$BENCH_DIR/refreshed"
printf '\n## Refresh\n\n'
"$examples/refresh" "$BENCH_DIR/refreshed" | sed 's/^/- /'
