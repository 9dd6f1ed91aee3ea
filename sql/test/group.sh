#!/usr/bin/env bash
# usage: sql/test/group.sh DIR FILE...
#
# Runs tests of the SQL edition one after the other on a private server in DIR, whose
# links sql and conformance lead to the sources: each *.sql in a database of its own
# with tacho installed, and scripts. Shows the lines of a test that begin with "# "; a
# test that ends with "skipped: why" does not count. DIR/result counts: "PASSED FAILED".
# Called by run.sh, as the server's user.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
cd "$1"
shift
echo "0 $#" >result # what ends before it has counted has failed
bin=$("${PG_CONFIG:-pg_config}" --bindir)
export PATH=$bin:$PATH LC_ALL=C.UTF-8 PGHOST=$PWD PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PSQLRC=/dev/null
unset PGOPTIONS
share=$("${PG_CONFIG:-pg_config}" --sharedir)/extension
preload=''
for name in pg_stat_statements pg_cron; do
	[ ! -e "$share/$name.control" ] || preload+=${preload:+,}$name
done
cron=
[[ "$preload" != *pg_cron* ]] || cron="cron.host = '$PWD'"
export TACHO_PRELOAD=$preload
initdb -D data -U postgres -A trust -E UTF8 --no-sync >initdb.log
# shellcheck disable=SC2016 # a quote in a here-document quotes nothing
cat >>data/postgresql.conf <<END
unix_socket_directories = '$PWD'
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
createdb installed # what databases of tests are copies of
psql -qX -d installed -v ON_ERROR_STOP=1 -f sql/tacho.sql >psql.log
# once FILE NAME: one try; nothing is left of an earlier one's databases
once() {
	: >"$2.log"
	psql -qX <<<"select format('drop database %I with (force)', datname) from pg_database where datname ~ '^t_' \\gexec"
	case $1 in
	*.sql)
		createdb -T installed "t_$2" &&
			psql -qAtX -d "t_$2" -v ON_ERROR_STOP=1 -f sql/test/helpers.sql -f "$1" >"$2.log" 2>&1
		;;
	*) "$1" >"$2.log" 2>&1 ;;
	esac
}
# shellcheck source=tools/pool.sh
source "$TACHO_SCRATCH/tools/pool.sh"
passed=0 failed=0
for file; do
	name=$(basename "${file%.*}") status=ok try=1
	until once "$file" "$name" >>psql.log 2>&1; do
		again $((try++)) "$name" "$name.log" && continue
		status=FAILED
		break
	done
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
echo "$passed $failed" >result
