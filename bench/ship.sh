#!/usr/bin/env bash
# ship.sh - bytes that tacho ship makes of made-up hours, compared with the tape, its CPU
# time and memory; Markdown on standard output
#
# usage: bench/ship.sh [DIR]
#
# Environment
#   HOURS hours to ship (default 6)
#
# Builds what it needs. Bytes depend on the data alone.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}/release
work=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/tacho-ship.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$top"
[ -n "${TACHO_PROGRAM:-}" ] || cargo build --release --locked --quiet --package tacho --package tacho-ship >&2
cargo build --release --locked --quiet --package tacho-tape --features testing --example dataset >&2
tacho=${TACHO_PROGRAM:-$target/tacho}
hours=${HOURS:-6}

# bytes NAME DIR: of the files of this name below a directory
bytes() { find "$2" -type f -name "$1" -exec cat {} + | wc -c; }

# row SET [--ages]: ships a set and prints a row
row() {
	local tape=$work/tape lake=$work/lake samples used
	rm -rf "$tape" "$lake"
	samples=$("$target/examples/dataset" "$@" --hours "$hours" | "$tacho" import sessions - --tape "$tape" 2>&1 |
		sed -n 's/^imported \([0-9]*\) samples.*/\1/p')
	used=$(/usr/bin/time -f '%U %S %M' "$tacho-ship" --tape "$tape" --to "file://$lake" 2>&1 | tail -n 1)
	awk -v name="$*" -v samples="$samples" -v used="$used" -v tape="$(bytes '*.tape' "$tape")" \
		-v runs="$(bytes '*.parquet' "$lake/sample_runs")" -v all="$(bytes '*.parquet' "$lake")" 'BEGIN {
		split(used, u, " ")
		printf "| `%s` | %d | %.2f | %.2f | %.2f | %.2f | %.1f s | %d MB |\n", name, samples, tape / samples,
			runs / samples, all / samples, runs / tape, u[1] + u[2], u[3] / 1024 }'
}

cat <<-END
	# What shipping takes

	\`bench/ship.sh\`, HOURS=$hours

	- date: $(date -u +%F), commit $(git rev-parse --short HEAD)
	- CPU: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)

	The table has bytes of files a sample, and CPU time and memory of \`tacho ship\`.
	[sizes](sizes.md) describes the sets.

	| Set | Samples | Tape | \`sample_runs\` | All tables | \`sample_runs\` to tape | CPU | Memory |
	|---|--:|--:|--:|--:|--:|--:|--:|
END
row uniform
row uniform --ages
row skewed
row skewed --ages
cat bench/ship.tried.md
