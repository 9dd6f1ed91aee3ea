#!/usr/bin/env bash
# usage: demo/load.sh BINDIR DSN
#
# Plays a minute of load against the database of DSN, which demo/run.sh has filled.
# Prints four moments, as seconds since 1970: the start, the begin and the end of the
# lock storm, the end.
#
#   0-60 s   pgbench, reads and writes; customers looking up their orders.
#   5-45 s   a console that opened a transaction and was forgotten.
#   10-28 s  an analyst's reports, larger than shared_buffers.
#   34-48 s  an import that locks one item and then does nothing; 24 checkouts of
#            this item wait for it.
#
# On a terminal it shows which part runs.
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
bin=$1 dsn=$2
sql=$(cd "$(dirname "$0")/load" && pwd)
length=${TACHO_DEMO_SECONDS:-60}
# shellcheck source=demo/players.sh
. "$(dirname "$0")/players.sh"

started=$SECONDS
doing=""
# until MOMENT: waits for the second of the load, scaled to its length
until_() {
	local moment=$(($1 * length / 60)) now bar
	while now=$((SECONDS - started)) && [ $now -lt $moment ]; do
		if [ -t 2 ]; then
			bar=$(printf '%*s' $((now * 20 / length)) '' | tr ' ' '#')
			printf '\r  [%-20s] %2d s of %d  %-38s' "$bar" "$now" "$length" "$doing" >&2
		fi
		sleep 0.5
	done
}
part() { echo $((($1 * length + 59) / 60)); }

date +%s
doing="orders and lookups"
bench shop "$length" -c 3 -R 120 -b tpcb-like
bench shop "$length" -c 3 -R 600 -b select-only
bench "customer page" "$length" -c 2 -R 300 -f "$sql/lookup.sql"
until_ 5
doing="and a forgotten transaction"
hold "admin console" "$(part 40)" "select count(*) from item;"
until_ 10
doing="and reports larger than the cache"
bench reports "$(part 18)" -c 2 -f "$sql/report.sql"
until_ 29
doing="orders and lookups"
until_ 34
doing="24 checkouts wait behind one import"
date +%s
hold "stock import" "$(part 13)" "update item set qty = 1000000 where id = 7;"
until_ 35
bench checkout "$(part 14)" -c 24 -f "$sql/checkout.sql"
until_ 50
date +%s
doing="orders and lookups"
until_ 60
date +%s
if [ -t 2 ]; then printf '\r%-79s\r' '' >&2; fi
