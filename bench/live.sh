#!/usr/bin/env bash
# usage: bench/live.sh [SECONDS [OPTION...]]
#
# Cost of tacho live while it follows 1,000 sessions at one tick a second, for SECONDS
# (default 600), with OPTIONs if any are given. The program shows the list of queries
# live, in tmux at 200 x 60. The script measures CPU and memory of the program alone,
# with 50 and with 500 of the sessions active. Then the program is paused and draws the
# whole screen 400 times: CPU of a frame. The histories are made up
# (live/examples/feed.rs); their logs are sealed every ten minutes or 250,000 rows.
# Prints rows of bench/results/live.md.
set -euo pipefail

seconds=${1:-600} options=("${@:2}")
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
	"$target/examples/feed" "$scratch/$active" $((active / 10)) $((seconds + 120)) &
	feeders+=($!)
done
until [ -e "$scratch/50/0000000005.open" ] && [ -e "$scratch/500/0000000005.open" ]; do sleep 1; done
sleep 5
for active in 50 500; do
	terminal -u new-session -d -s "a$active" -x 200 -y 60 \
		"exec env TERM=tmux-256color $(realpath "$target")/tacho-live --tape $scratch/$active ${options[*]}"
	terminal send-keys -t "a$active" q
done
sleep 10
declare -A pid first used rss
remember() {
	for active in 50 500; do
		rss[$active]+=" $(($(memory "${pid[$active]}") / 1024))"
	done
}
for active in 50 500; do
	pid[$active]=$(terminal display-message -p -t "a$active" '#{pane_pid}')
	first[$active]=$(cpu "${pid[$active]}")
done
remember
for _ in 1 2 3 4 5; do
	sleep $((seconds / 5))
	remember
done
hz=$(getconf CLK_TCK)
echo "| Active of 1,000 | CPU | Memory at first, after each fifth of the time | CPU of a frame |"
echo "|--:|--:|--:|--:|"
for active in 50 500; do
	used[$active]=$(($(cpu "${pid[$active]}") - first[$active]))
done
for active in 50 500; do
	terminal send-keys -t "a$active" Space
	sleep 2
	before=$(cpu "${pid[$active]}")
	for _ in {1..400}; do
		terminal send-keys -t "a$active" C-l
		sleep 0.03
	done
	frames=$(($(cpu "${pid[$active]}") - before))
	awk -v active="$active" -v used="${used[$active]}" -v hz="$hz" -v s="$seconds" \
		-v rss="${rss[$active]}" -v frames="$frames" 'BEGIN { printf \
		"| %s | %.2f %% |%s MiB | %.1f ms |\n", active, 100 * used / hz / s, rss, 1000 * frames / hz / 400 }'
done
