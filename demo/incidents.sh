#!/usr/bin/env bash
# usage: demo/incidents.sh [NAME]...
#
# Plays incidents against the cluster of "make demo": those named, or all. Each is
# calm for 40 seconds, then in trouble for 40. A file of demo/incidents is one of
# them; "-h" lists their names.
#
# Prints lines for each incident to paste into a shell. They set "calm", "since"
# and "until", the times that the commands of the guide need. .demo/incidents has
# the same lines for tools/screenshots.sh and for the test that solves each
# incident on the page.
#
# Environment: TACHO_INCIDENT_SECONDS instead of 40.
set -euo pipefail

demo=$(cd "$(dirname "$0")" && pwd -P)
usage() {
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"
	for name in $(names); do
		printf '  %-17s %s\n' "$name" "$(sed -n '2s/^# //p' "$demo/incidents/$name.sh")"
	done
	exit 2
} >&2
names() { find "$demo/incidents" -name '*.sh' -printf '%f\n' | sed 's/\.sh$//' | sort; }

for name in "$@"; do [ -e "$demo/incidents/$name.sh" ] || usage; done
# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(names)

link=$(dirname "$demo")/.demo
dsn=$("$demo/run.sh" --dsn)
# shellcheck disable=SC2034 # players.sh uses it
bin=$(<"$link/bin")
length=${TACHO_INCIDENT_SECONDS:-40}
# shellcheck disable=SC2034 # incidents use it
load=$demo/load
# shellcheck source=demo/players.sh
. "$demo/players.sh"

say() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*" >&2; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
sql() { as "$1" psql -Xq -v ON_ERROR_STOP=1 -c "$2" "$dsn"; }
value() { as setup psql -XqAtc "$1" "$dsn"; }
as_server() { "$demo/../tools/as-server.sh" "$@"; }
set_to() { sql setup "alter system set $1 = '$2'" && value "select pg_reload_conf()" >/dev/null; }
reset() { sql setup "alter system reset $1" && value "select pg_reload_conf()" >/dev/null; }

# Finer records than the defaults, because an incident is short here
prepare() {
	set_to tacho.statements_interval 5s
	set_to tacho.server_interval 5s
	set_to track_io_timing on
	PGOPTIONS='-c client_min_messages=warning' sql setup \
		"create index if not exists orders_customer on orders (customer, ordered_at)"
	sql setup "vacuum analyze orders"
}

# everyday SECONDS: the usual load of the shop
everyday() {
	bench shop "$1" -c 2 -R 40 -b tpcb-like
	bench "customer page" "$1" -c 2 -R 100 -f "$load/lookup.sql"
	bench "order history" "$1" -c 4 -R 40 -f "$load/history.sql"
}

# An incident is a function "trouble"; before its calm and after its trouble it may
# prepare and clean up.
play() {
	local calm since until
	before() { :; }
	after() { :; }
	# shellcheck source=/dev/null
	. "$demo/incidents/$1.sh"
	PGOPTIONS='-c client_min_messages=warning' before
	sleep 5 # its preparations shall be in no window
	calm=$(now)
	say "$1: calm"
	everyday $((length * 2))
	sleep "$length"
	since=$(now)
	say "$1: trouble"
	trouble
	until=$(now)
	printf '# %s\ncalm=%s since=%s until=%s\n' "$1" "$calm" "$since" "$until"
	echo "$1 $calm $since $until" >>"$link/incidents"
	after
	wait
	sleep 5 # nor its end in the calm of the next
}

say "setting up"
prepare
for name in "$@"; do play "$name"; done
