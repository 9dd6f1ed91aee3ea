#!/usr/bin/env bash
# usage: sql/test/run.sh [-k] [NAME]...
#
# Tests the SQL edition on private servers of PG_CONFIG: the conformance
# cases (from hot rows, packed, summed up), test/sql/*.sql and test/sh/*.sh. The
# two that take longest run beside the others (tools/pool.sh), each on a server of
# its own (group.sh). With NAMEs only the tests whose names contain one of them.
# -k keeps the scratch directory. The last line counts: "15.20: N passed, N failed".
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
keep=0
while getopts k option; do
	case $option in
	k) keep=1 ;;
	*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# a directory the server's user may use, then once more as that user
if [ -z "${TACHO_SCRATCH:-}" ]; then
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/tacho-sql.XXXXXX")
	[ $keep = 1 ] || trap 'rm -rf "$scratch"' EXIT
	cp -R "$here/.." "$scratch/sql"
	cp -R "$root/conformance" "$scratch/conformance"
	mkdir "$scratch/tools"
	cp "$root/tools/pool.sh" "$root/tools/wanted.sh" "$scratch/tools/"
	chmod -R go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$root/tools/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	TACHO_SCRATCH=$scratch "$root/tools/as-server.sh" "$scratch/sql/test/run.sh" "$@"
	exit
fi

cd "$TACHO_SCRATCH"
# shellcheck source=tools/wanted.sh
source tools/wanted.sh
cron=() scan=() rest=()
for file in sql/test/conformance.sh sql/test/sql/*.sql sql/test/sh/*.sh; do
	[ -e "$file" ] || continue
	name=$(basename "${file%.*}")
	wanted "$name" "$@" || continue
	case $name in
	cron) cron+=("$file") ;;
	naive_scan) scan+=("$file") ;;
	*) rest+=("$file") ;;
	esac
done

# group NAME FILE...: its tests, in a directory of its own
group() {
	[ $# -gt 1 ] || return 0
	mkdir "$1"
	ln -s ../sql ../conformance "$1/"
	pool_run sql/test/group.sh "$1" "${@:2}"
}
# shellcheck source=tools/pool.sh
source tools/pool.sh
pool_open
group rest "${rest[@]}"
group cron "${cron[@]}"
group scan "${scan[@]}"
wait
read -r passed failed < <(cat ./*/result | awk '{ ok += $1; bad += $2 } END { print ok + 0, bad + 0 }')
version=$("${PG_CONFIG:-pg_config}" --version | cut -d' ' -f2)
echo "$version: $passed passed, $failed failed"
[ "$failed" = 0 ]
