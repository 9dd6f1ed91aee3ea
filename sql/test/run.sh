#!/usr/bin/env bash
# usage: sql/test/run.sh [-k] [NAME]...
#
# Tests the SQL edition on a private server of PG_CONFIG: the conformance
# cases (from hot rows, packed, summed up), test/sql/*.sql, each in a database
# of its own with tacho installed, and test/sh/*.sh. With NAMEs only the tests
# whose names contain one of them. -k keeps the scratch directory. Lines of a
# test that begin with "# " are shown; one that ends with "skipped: why" does
# not count. The last line counts: "15.20: N passed, N failed".
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
	chmod -R go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$root/tools/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	TACHO_SCRATCH=$scratch "$root/tools/as-server.sh" "$scratch/sql/test/run.sh" "$@"
	exit
fi

cd "$TACHO_SCRATCH"
bin=$("${PG_CONFIG:-pg_config}" --bindir)
export PATH=$bin:$PATH LC_ALL=C.UTF-8 PGHOST=$TACHO_SCRATCH PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PSQLRC=/dev/null
unset PGOPTIONS
share=$("${PG_CONFIG:-pg_config}" --sharedir)/extension
preload=''
for name in pg_stat_statements pg_cron; do
	[ ! -e "$share/$name.control" ] || preload+=${preload:+,}$name
done
cron=
[[ "$preload" != *pg_cron* ]] || cron="cron.host = '$TACHO_SCRATCH'"
export TACHO_PRELOAD=$preload
initdb -D data -U postgres -A trust -E UTF8 --no-sync >initdb.log
# shellcheck disable=SC2016 # a quote in a here-document quotes nothing
cat >>data/postgresql.conf <<END
unix_socket_directories = '$TACHO_SCRATCH'
listen_addresses = ''
shared_preload_libraries = '$preload'
$cron
fsync = off
autovacuum = off
max_connections = 50
max_prepared_transactions = 5
compute_query_id = on
END
pg_ctl -D data -l server.log -w start >/dev/null || { tail -n 20 server.log >&2; exit 1; }
trap 'pg_ctl -D data -m immediate stop >/dev/null' EXIT
version=$(psql -qAtc 'show server_version')
version=${version%% *}
passed=0 failed=0

wanted() {
	local name=$1 each
	shift
	[ $# -gt 0 ] || return 0
	for each; do [[ "$name" != *"$each"* ]] || return 0; done
	return 1
}

for file in sql/test/conformance.sh sql/test/sql/*.sql sql/test/sh/*.sh; do
	[ -e "$file" ] || continue
	name=$(basename "${file%.*}")
	wanted "$name" "$@" || continue
	case $file in
	*.sql)
		if createdb "t_$name" && psql -qX -d "t_$name" -v ON_ERROR_STOP=1 -f sql/tacho.sql >/dev/null &&
			psql -qAtX -d "t_$name" -v ON_ERROR_STOP=1 -f sql/test/helpers.sql -f "$file" >"$name.log" 2>&1
		then status=ok; else status=FAILED; fi
		;;
	*) if "$file" >"$name.log" 2>&1; then status=ok; else status=FAILED; fi ;;
	esac
	read -r ok bad < <(sed -nE 's/^([0-9]+) cases passed, ([0-9]+) failed$/\1 \2/p' "$name.log" | tail -n 1 | grep . || echo "1 0")
	if [ "$status" = FAILED ] && [ "$bad" = 0 ]; then ok=0 bad=1; fi
	if [ "$bad" != 0 ]; then status=FAILED; fi
	skipped=$(tail -n 1 "$name.log" | grep '^skipped: ' || true)
	if [ "$status" = ok ] && [ -n "$skipped" ]; then status=$skipped ok=0; fi
	passed=$((passed + ok)) failed=$((failed + bad))
	printf '%-28s %s\n' "$name" "$status"
	grep '^# ' "$name.log" || true
	[ "$status" != FAILED ] || tail -n 30 "$name.log"
done
echo "$version: $passed passed, $failed failed"
[ $failed = 0 ]
