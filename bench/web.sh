#!/usr/bin/env bash
# usage: bench/web.sh [-n RUNS] [-d DAYS] [-l SECONDS] [-w WINDOW] [-x SPEED] [-t] [-r MS,…]
#        (build first: make program, cargo build --release -p tacho-tape
#        --features testing --examples, cargo build --release -p tacho-live --examples)
#
# Measures the page of tacho web in Debian's Chromium:
#   - the time until the page is there;
#   - the time from the end of a brush until all panels have answered;
#   - the time from a tick until it is on the screen;
#   - the sizes of the page, the tab and the process.
#
# Makes the skewed day, the churn day and DAYS uniform days (default 365, which take 2.4 GB).
# Shows each of these histories whole, RUNS times (default 20).
#
# Live follows 1,000 sessions, 500 of them active, for SECONDS (default 60; 900 to see
# growth). Its window is WINDOW (default 15m; 1m is full soon, so growth after that is a
# leak). -t measures live alone, without the histories. -x makes time run SPEED times as
# fast: ticks are written at that rate, and tacho web gets the same clock (bench/clock.c,
# which needs a C compiler). So -l 864 -x 100 is a day in a quarter of an hour. -r measures
# paint and brush of the skewed day alone, with MS added to each answer: 0,250,1200 is this
# host, another continent, and a bad connection. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

runs=20 days=365 seconds=60 live=0 window=15m speed=1 far=
while getopts n:d:l:w:x:r:t option; do
  case $option in
    n) runs=$OPTARG ;;
    d) days=$OPTARG ;;
    l) seconds=$OPTARG ;;
    w) window=$OPTARG ;;
    x) speed=$OPTARG ;;
    r) far=$OPTARG ;;
    t) live=1 ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
started=()
finish() {
  [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
  bench_cleanup
}
trap finish EXIT
"$top/tools/prereq.sh" page >&2
(cd "$top/page" && npm install --no-save --loglevel=error >&2)
release=$(realpath "$(dirname "$TACHO_PROGRAM")")

# data NAME SET: a tape of a made-up day.
data() {
  "$release/examples/dataset" "$2" | "$TACHO_PROGRAM" import sessions - --tape "$BENCH_DIR/$1" >&2
}

tapes=() histories=()
if [ $live = 0 ]; then
  data day skewed
fi
if [ $live = 0 ] && [ -z "$far" ]; then
  data churn churn
  data year uniform
  "$release/examples/year" "$BENCH_DIR/year" "$days" >&2
  # the made-up day is 2026-03-02, the year ends with it
  first=$(date -u -d "2026-03-03 - $days days" +%F)
  for name in day churn year; do tapes+=(--tape "$name=$BENCH_DIR/$name"); done
  histories=("day,2026-03-02T00:00:00Z,2026-03-03T00:00:00Z" "churn,2026-03-02T00:00:00Z,2026-03-03T00:00:00Z"
    "year,${first}T00:00:00Z,2026-03-03T00:00:00Z")
fi
if [ -n "$far" ]; then
  tapes=(--tape "day=$BENCH_DIR/day")
  histories=("day,2026-03-02T00:00:00Z,2026-03-03T00:00:00Z")
else
  "$release/examples/feed" "$BENCH_DIR/live" 50 $(((seconds + 3600) * speed)) "$speed" &
  started+=($!)
  # the feed has written its first forty minutes and needs little CPU from now on
  until [ -s "$BENCH_DIR/live.clock" ]; do sleep 0.1; done
  tapes+=(--tape "live=$BENCH_DIR/live")
fi
clock=()
if [ "$speed" != 1 ]; then
  cc -O2 -shared -fPIC -o "$BENCH_DIR/clock.so" "$top/bench/clock.c"
  clock=(env "LD_PRELOAD=$BENCH_DIR/clock.so" "CLOCK=$BENCH_DIR/live.clock")
fi
token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
(umask 077; printf '%s\n' "$token" >"$BENCH_DIR/token")
"${clock[@]}" "$release/tacho-web" "${tapes[@]}" --token-file "$BENCH_DIR/token" \
  --listen 127.0.0.1:0 >"$BENCH_DIR/address" &
web=$!
started+=("$web")
until [ -s "$BENCH_DIR/address" ]; do sleep 0.1; done

echo '# The page of tacho web'
echo
echo "- date: $(date -u +%F), commit $(git -C "$top" rev-parse --short HEAD), load average $(cut -d' ' -f1 /proc/loadavg)"
echo "- CPU: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), kernel $(uname -r | grep -o '^[0-9.]*[0-9]')"
echo "- $("${CHROMIUM:-chromium}" --version | cut -d' ' -f1,2), 1440 × 1000, headless, drawn without a GPU"
echo "- command: \`bench/web.sh -n $runs -d $days -l $seconds -w $window${far:+ -r $far}$([ "$speed" = 1 ] || echo " -x $speed")$([ $live = 0 ] || echo ' -t')\`"
echo "- day and churn: skewed and churn of [sizes.md](sizes.md), 24 h shown; year: $days uniform days, all of them shown"
echo
echo '| What | n | Median | p95 | Budget |'
echo '|---|--:|--:|--:|--:|'
cd "$top/page"
measure() { # LATENCY ARGUMENT…
  TACHO_WEB=$(<"$BENCH_DIR/address") TACHO_TOKEN=$token TACHO_WEB_PID=$web TACHO_RUNS=$runs TACHO_SECONDS=$seconds TACHO_SPEED=$speed \
    TACHO_HISTORIES="${histories[*]}" TACHO_FEED=$BENCH_DIR/live TACHO_LIVE=$window TACHO_LATENCY=$1 \
    node_modules/.bin/playwright test --config e2e/budget.config.ts "${@:2}"
}
if [ -z "$far" ]; then
  measure ''
else
  for latency in ${far//,/ }; do measure "$latency" -g 'paint|brush'; done
fi
