#!/usr/bin/env bash
# statements_sizes.sh - sizes of the history of statements. It measures a day of 5,000
# entries, half of them idle in each minute. It also measures a year of such days, with
# old days in intervals of 10 minutes and of an hour. Markdown on standard output
#
# usage: bench/statements_sizes.sh [DIR]
#
# Builds what it needs. 3.5 million rows a day, 0.6 GB of CSV in DIR; about two
# minutes. A size depends on the data alone; speed is CPU time.
set -euo pipefail

case ${1:-} in -*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac
top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}/release
work=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/tacho-sizes.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$top"
cargo build --release --locked --quiet --package tacho >&2
cargo build --release --locked --quiet --package tacho-tape --features testing --example statements >&2
made=$target/examples/statements

# cpu COMMAND...: its CPU seconds
cpu() { ( TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1 ) 2>&1 | awk '{ print $1 + $2 }'; }
kib() { du -sk "$work/$1" | cut -f1; }

"$made" day >"$work/day.csv"
rows=$(($(wc -l <"$work/day.csv") - 1))
imported=$(cpu "$target/tacho" import statements "$work/day.csv" --tape "$work/minute")
rm "$work/day.csv"
cp -R "$work/minute" "$work/ten"
ten=$(cpu "$made" thin "$work/ten" 10)
cp -R "$work/ten" "$work/hour"
hour=$(cpu "$made" thin "$work/hour" 60)

cat <<END
# How large the history of statements is

- date: $(date -u +%F), commit $(git rev-parse --short HEAD)
- CPU: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
- command: \`bench/statements_sizes.sh\`

| A day in intervals of | MiB (du) | made in, s of CPU | kept so, days of a year |
|---|--:|--:|--:|
END
row() { awk -v t="$1" -v k="$(kib "$2")" -v s="$3" -v d="$4" 'BEGIN { printf "| %s | %.2f | %.1f | %d |\n", t, k / 1024, s, d }'; }
row "1 minute" minute "$imported" 14
row "10 minutes" ten "$ten" 46
row "1 hour" hour "$hour" 305
awk -v n="$rows" -v m="$(kib minute)" -v t="$(kib ten)" -v h="$(kib hour)" 'BEGIN {
	printf "\n%d rows, %.1f bytes each. A year, each day in its file: 14 × %.2f + 46 × %.2f + 305 × %.2f\n",
		n, m * 1024 / n, m / 1024, t / 1024, h / 1024
	printf "MiB = **%.2f GiB**.\n", (14 * m + 46 * t + 305 * h) / 1048576 }'
cat <<'END'

5,000 statements are executed by Zipf's law and a daily curve, so that a random half of them runs
in each minute. In each minute calls, times, CPU, rows, blocks, WAL and the 24 buckets of the
histogram vary by themselves. That is a dozen numbers a row and more. The sizes do not include
texts; `tacho.text_limit` allows 16 MiB of texts a day before compression.

The year is a sum, not a year of load: each day is one file, and all days are the same day. The
writer keeps a day whole until `tacho.statements_full_age` (14 days), then in intervals of 10
minutes until `tacho.statements_ten_minutes_age` (60 days), then in hours. The budget is 60 MiB a
day and 3 GiB a year.
END
