#!/usr/bin/env bash
# usage: demo/incidents.sh [lock-storm | plan-change | io-saturation]...
#
# Plays the incidents of docs/guide against the cluster of "make demo": all
# three, or those named. Each is 40 seconds of calm, then 40 of trouble:
#
#   lock-storm     an import locks one item and then does nothing, with 24
#                  checkouts of this item behind it
#   plan-change    a deployment drops the index that the order history reads
#   io-saturation  four exports read orders in random order, and the host has no
#                  memory left to cache files in
#
# Prints for each what to paste into a shell: it sets "calm", "since" and
# "until", the times the commands of the guide ask for; .demo/incidents has them
# for tools/screenshots.sh.
#
# Environment: TACHO_INCIDENT_SECONDS instead of 40.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
for name in "$@"; do
	case $name in lock-storm | plan-change | io-saturation) ;; *) usage ;; esac
done
[ $# -gt 0 ] || set -- lock-storm plan-change io-saturation

demo=$(cd "$(dirname "$0")" && pwd -P)
link=$(dirname "$demo")/.demo
dsn=$("$demo/run.sh" --dsn)
bin=$(<"$link/bin")
length=${TACHO_INCIDENT_SECONDS:-40}
# shellcheck source=demo/players.sh
. "$demo/players.sh"

say() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*" >&2; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
sql() { as "$1" psql -Xq -v ON_ERROR_STOP=1 -c "$2" "$dsn"; }

# Finer records than the defaults, because an incident is short here
prepare() {
	local setting
	for setting in "tacho.statements_interval = '5s'" "tacho.server_interval = '5s'" \
		"track_io_timing = on"; do
		sql setup "alter system set $setting"
	done
	sql setup "select pg_reload_conf()" >/dev/null
	PGOPTIONS='-c client_min_messages=warning' sql setup \
		"create index if not exists orders_customer on orders (customer, ordered_at)"
	sql setup "vacuum analyze orders"
}

# everyday SECONDS: the usual load of the shop
everyday() {
	bench shop "$1" -c 2 -R 40 -b tpcb-like
	bench "customer page" "$1" -c 2 -R 100 -f "$demo/load/lookup.sql"
	bench "order history" "$1" -c 4 -R 40 -f "$demo/load/history.sql"
}

lock-storm() {
	hold "stock import" $((length * 9 / 10)) \
		"update item set qty = 1000000 where id = 7;"
	sleep 2
	bench checkout $((length - 2)) -c 24 -f "$demo/load/checkout.sql"
	sleep $((length - 2))
}

plan-change() {
	sql deployment "drop index orders_customer"
	sleep "$length"
	sql deployment "create index concurrently orders_customer on orders (customer, ordered_at)"
}

# forget SECONDS: makes the kernel drop cached pages of the orders, again and again
forget() {
	local end=$((SECONDS + $1)) data files file
	data=$(as setup psql -XqAtc "show data_directory" "$dsn")
	files=$(as setup psql -XqAtc "select pg_relation_filepath(oid) from pg_class
		where relname in ('orders', 'orders_pkey', 'orders_customer')" "$dsn")
	while [ $SECONDS -lt $end ]; do
		for file in $files; do
			dd if="$data/$file" iflag=nocache count=0 status=none
		done
		sleep 0.2
	done
}

io-saturation() {
	bench export "$length" -c 4 -f "$demo/load/export.sql"
	forget "$length"
}

# play INCIDENT
play() {
	local calm since until
	calm=$(now)
	say "$1: calm"
	everyday $((length * 2))
	sleep "$length"
	since=$(now)
	say "$1: trouble"
	"$1"
	until=$(now)
	printf '# %s\ncalm=%s since=%s until=%s\n' "$1" "$calm" "$since" "$until"
	echo "$1 $calm $until" >>"$link/incidents"
	wait
	sleep 5 # nothing of it shall be in the calm of the next
}

say "setting up"
prepare
for name in "$@"; do play "$name"; done
