#!/usr/bin/env bash
# sizes.sh - bytes of made-up days and of a recorded hour. It also measures the speed of import,
# seal and merge, and the memory of writer and readers. Markdown on standard output
#
# usage: bench/sizes.sh [DIR]
#
# Environment
#   RECORDED  history directory to measure beside the made-up days: the hour that
#             bench/record.sh records
#   HOURS     length of the made-up days (default 24)
#
# Builds what it needs. A size depends on the data alone; speed is CPU time.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}/release
work=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/tacho-sizes.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$top"
[ -n "${TACHO_PROGRAM:-}" ] || cargo build --release --locked --quiet --package tacho >&2
cargo build --release --locked --quiet --package tacho-tape --features testing --examples >&2
tacho=${TACHO_PROGRAM:-$target/tacho}
hours=${HOURS:-24}

# cpu COMMAND...: its standard error and, last, its CPU seconds.
cpu() { ( TIMEFORMAT='%U %S'; time "$@" >/dev/null ) 2>&1; }

# peak COMMAND...: highest memory in KiB, read every 5 ms.
peak() {
	local pid kib=0 now
	"$@" >/dev/null 2>&1 &
	pid=$!
	while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
		kib=$now
		sleep 0.005
	done
	wait "$pid" || true
	echo "$kib"
}

# day NAME FILE: imports a CSV file and prints a row.
day() {
	local tape=$work/tape out seconds rows kib
	rm -rf "$tape"
	out=$(cpu "$tacho" import sessions "$2" --tape "$tape")
	seconds=$(tail -n 1 <<<"$out" | awk '{ print $1 + $2 }')
	rows=$(sed -n 's/^imported \([0-9]*\) samples.*/\1/p' <<<"$out")
	kib=$(du -sk "$tape" | cut -f1)
	awk -v name="$1" -v rows="$rows" -v kib="$kib" -v s="$seconds" 'BEGIN {
		printf "| %s | %d | %d | %.2f | %.2f |\n", name, rows, kib, kib * 1024 / rows, rows / s / 1e6 }'
}

echo '# Sizes, speed of writing, memory'
echo
echo "\`bench/sizes.sh\`, HOURS=$hours"
echo
echo "- date: $(date -u +%F), commit $(git rev-parse --short HEAD)"
echo "- CPU: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
echo
echo '## Days as imported'
echo
echo '| Data set | Samples | KiB (du) | Bytes a sample | M rows/s of CPU |'
echo '|---|--:|--:|--:|--:|'
for set in uniform 'uniform --ages' skewed 'skewed --ages' churn; do
	# shellcheck disable=SC2086 # the words of a data set are its arguments
	"$target/examples/dataset" $set --hours "$hours" > "$work/day.csv"
	day "$set" "$work/day.csv"
	[ "$set" != uniform ] || mv "$work/tape" "$work/uniform"
done
if [ -n "${RECORDED:-}" ]; then
	"$tacho" export sessions --tape "$RECORDED" > "$work/day.csv"
	day "recorded, exported and imported" "$work/day.csv"
	echo
	echo "The recorded history itself: $(du -sk "$RECORDED" | cut -f1) KiB."
fi
rm -f "$work/day.csv"

cat <<'TEXT'

- **uniform**: every second 50 sessions, each sample any of 21 wait events and
  any of 200 random query identifiers: 12.04 bits of entropy a sample, 6.2 MiB
  a day of 4.32 million samples.
- **skewed**: 120 clients by a daily curve, 2,000 statements by Zipf's law,
  executions of one to 120 seconds. Every two hours sessions pile up behind one
  lock. Sessions reconnect, and have every column.
- **churn**: ten samples a second, each of a new backend, 5,000 statements an
  hour, 200 applications.
- **--ages**: start of query, transaction and state of every sample.

Import of **churn** stays below a million rows a second, because each row is a process of its own.
So each row takes a definition of eight columns, and a place among 864,000 processes that is in no
cache. It takes 5 bytes of a file instead of 1.5. The table has CPU seconds of the day for each
change that was tried. Each ran in turns with the one before on a busy machine (an idle one took 3.5
before and takes 1.6 now):

| Tried | CPU, s |
|---|--:|
| texts of sessions kept in a hash table of vectors; numbers of queries turned into text for the totals of each group | 5.0 |
| texts in one piece of memory; the first entry of a process beside the process instead of in a second table; no table by process id if no line names one; codes of queries carried on from group to group | 2.3 |
| a table of texts that passes most others without a look | 2.2 |

The search for the texts of a line takes a seventh of the remaining time, the table of processes a
tenth, sealing an eighth. Sealing in another thread would not reduce CPU time.

## Logs, blocks, merged files

TEXT
"$target/examples/size"
cat <<'TEXT'

Rows are session-samples. If the load does not say otherwise, half of the samples equal the one
before. At 10 ms it is 99 of 100.

A file takes some 5 ms to seal whatever is in it: 600 frames and some 70 columns, each with bins of
its own. From 50 sessions on, it seals two million rows a second. The table has the changes that
were tried. Its figures are million instructions for ten minutes of 10 sessions (4,500 rows), and
bytes a sample of the block:

A file takes some 5 ms to seal whatever is in it: 600 frames and some 70
columns, each with bins of its own. It is two million rows a second from 50
sessions on. Tried, million instructions for ten minutes of 10 sessions (4,500
rows) and bytes a sample of the block:

| Tried | M | B |
|---|--:|--:|
| vectors that grow, numbers converted into others | 53 | |
| vectors made as long as they get, numbers converted where they stand | 47 | 4.76 |
| … sections decoded into memory that is used again, definitions found by a faster hash | 41 | 4.76 |
| … and pco told how to take differences (of columns of less than 8,192 rows: by steps where they ascend, else none) instead of choosing; not kept for its bytes | 34 | 4.84 |
| … or 16 bins instead of 256 in columns of less than 8,192 rows; not kept for its bytes | 38 | 4.83 |

17 of these 41 million read frames; the rest writes 53 columns. pco's choice of differences takes 10
of that rest. Two million rows a second would be 18.

## Memory

| Process | Peak, KiB |
|---|--:|
TEXT
"$target/examples/dataset" uniform --hours "$hours" > "$work/day.csv"
echo "| import sessions, the uniform day | $(peak "$tacho" import sessions "$work/day.csv" --tape "$work/imported") |"
rm -rf "$work/day.csv" "$work/imported"
"$target/examples/frames" 50 7200 > "$work/frames.bin"
echo "| writer, 50 sessions, two hours of frames at once | $(peak bash -c \
	"exec '$tacho' tape-writer --directory '$work/writer' < '$work/frames.bin'") |"
end=$(date -u -d "2026-03-02 + $hours hours" '+%Y-%m-%dT%H:%M:%SZ')
window=(--tape "$work/uniform" --since 2026-03-02T00:00:00Z --until "$end")
echo "| top wait_event, the uniform day | $(peak "$tacho" top wait_event "${window[@]}") |"
echo "| top query_id by wait_event | $(peak "$tacho" top query_id --by wait_event "${window[@]}") |"
echo "| export sessions | $(peak "$tacho" export sessions --tape "$work/uniform") |"
