#!/usr/bin/env bash
# Records the load of the demo, once a second, and keeps the history: the data
# set "recorded" of sizes.sh and history.sh.
#
# usage: bench/record.sh [-t SECONDS] DIR   (build first: cargo build --release -p tacho)
#
# DIR is made; an hour is recorded unless -t says otherwise. It uses the directory of
# the demo, so no demo may exist. Then:
#   RECORDED=DIR bench/sizes.sh
#   RECORDED=DIR bench/history.sh
# Environment: PG_CONFIG, TACHO_PROGRAM
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
seconds=3600
while getopts t: option; do
	case $option in
	t) seconds=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
top=$(cd "$(dirname "$0")/.." && pwd -P)
[ ! -e "$top/.demo" ] || { echo 'error: a demo is there; make demo-stop removes it' >&2; exit 1; }
[ ! -e "$1" ] || { echo "error: \"$1\" is there already" >&2; exit 1; }

trap '"$top/demo/run.sh" --stop' EXIT
TACHO_DEMO_SECONDS=$seconds TACHO_DEMO_INTERVAL=1s "$top/demo/run.sh" >&2
demo=$(realpath "$top/.demo")
"$top/tools/as-server.sh" "$(<"$demo/bin")/pg_ctl" -s -w -D "$demo/data" -m fast stop
cp -R "$demo/data/tacho" "$1"
"$demo/tacho" status --tape "$1" >&2
