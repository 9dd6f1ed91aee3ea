#!/usr/bin/env bash
# usage: bench/live.sh [SECONDS]
#
# What tacho live costs while it follows 1,000 sessions at one tick a second, for
# 10 minutes or so many seconds: CPU and memory, of the program alone, in tmux at
# 200 x 60; with 50 and with 500 of them active, live in the list of queries.
# The histories are made up (live/examples/feed.rs). Prints rows of
# bench/results/live.md.
set -euo pipefail

seconds=${1:-600}
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet --package tacho-live --examples --bins
target=${CARGO_TARGET_DIR:-target}/release
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tacho-live-bench.XXXXXX")
socket=tacho-live-bench-$$
terminal() { tmux -L "$socket" -f /dev/null "$@"; }
feeders=()
finish() {
	terminal kill-server 2>/dev/null || true
	[ ${#feeders[@]} = 0 ] || kill "${feeders[@]}" 2>/dev/null || true
	rm -rf "$scratch"
}
trap finish EXIT

# ticks of CPU of a process, and its resident KiB
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

for active in 50 500; do
	"$target/examples/feed" "$scratch/$active" $((active / 10)) $((seconds + 60)) &
	feeders+=($!)
done
sleep 5
for active in 50 500; do
	terminal -u new-session -d -s "a$active" -x 200 -y 60 \
		"exec env TERM=tmux-256color $(realpath "$target")/tacho-live --tape $scratch/$active"
	terminal send-keys -t "a$active" q
done
sleep 10
declare -A pid first rss
for active in 50 500; do
	pid[$active]=$(terminal display-message -p -t "a$active" '#{pane_pid}')
	first[$active]=$(cpu "${pid[$active]}")
	rss[$active]=$(memory "${pid[$active]}")
done
sleep "$seconds"
echo "| Active of 1,000 | CPU | Memory at first, at the end |"
echo "|--:|--:|--:|"
for active in 50 500; do
	used=$(($(cpu "${pid[$active]}") - first[$active]))
	percent=$(awk -v used="$used" -v hz="$(getconf CLK_TCK)" -v s="$seconds" 'BEGIN { printf "%.2f", 100 * used / hz / s }')
	printf '| %s | %s %% | %s, %s MiB |\n' "$active" "$percent" \
		$((rss[$active] / 1024)) $(($(memory "${pid[$active]}") / 1024))
done
