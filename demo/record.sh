#!/usr/bin/env bash
# usage: demo/record.sh [--stop]
#
# The demo for servers where nothing can be installed. It runs a stock PostgreSQL
# (PG_CONFIG, default pg_config), PgBouncer by transaction in front of it if installed,
# and tacho record as a role with pg_monitor. In the middle of a minute of load the
# pooler, or else the connection, is killed. Everything is in a directory under /var/tmp
# that .demo-record of this repository points to; server and recorder stay up.
#
#   --stop  stop them and remove everything
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=demo/say.sh
source "$repo/demo/say.sh"
link=$repo/.demo-record
# shellcheck source=demo/stock.sh
source "$repo/demo/stock.sh"
tacho=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$repo/target}/release/tacho}
pgbouncer=$(PATH=$PATH:/usr/sbin command -v pgbouncer || true)
cd / # the server's user may not see where we are

stamp() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }

stop() { stock_stop run/recorder run/pooler; }

create() {
	stock_place tacho-demo-record
	stock_server pg_stat_statements
	sql -c 'create role watcher login' -c 'grant pg_monitor to watcher'
	conninfo="host=$demo/run port=5432 dbname=shop user=watcher"
	[ -z "$pgbouncer" ] || pool
}

# Starts a pooler. Its socket is in the directory that only the server's user may enter.
pool() {
	conninfo="host=$demo/run port=6432 dbname=shop user=watcher"
	[ -e "$demo/run/pgbouncer.ini" ] || {
		echo '"watcher" ""' | "$as_server" tee "$demo/run/users" >/dev/null
		printf '%s\n' '[databases]' "shop = host=$demo/run port=5432" '[pgbouncer]' 'listen_port = 6432' \
			"unix_socket_dir = $demo/run" 'auth_type = trust' "auth_file = $demo/run/users" \
			'pool_mode = transaction' 'server_login_retry = 1' "pidfile = $demo/run/pooler" \
			"logfile = $demo/run/pgbouncer.log" | "$as_server" tee "$demo/run/pgbouncer.ini" >/dev/null
	}
	"$as_server" "$pgbouncer" -d -q "$demo/run/pgbouncer.ini"
}

record() {
	say "Recording as a role with pg_monitor${pgbouncer:+, through PgBouncer by transaction}"
	"$tacho" record --check "$conninfo" | sed 's/^/  /'
	"$tacho" record "$conninfo" --tape "$demo/history" --interval 200 --statements-interval 10000 \
		>/dev/null 2>"$demo/recorder.log" &
	echo $! >"$demo/run/recorder"
	until [ -n "$("$tacho" aas --tape "$demo/history" --json 2>/dev/null)" ]; do
		kill -0 "$(<"$demo/run/recorder")" 2>/dev/null || { cat "$demo/recorder.log" >&2; die "the recorder has ended"; }
		sleep 0.5
	done
}

# Twenty seconds into the load the connection is gone, for three seconds where
# there is a pooler.
break_off() {
	sleep 20
	if [ -n "$pgbouncer" ]; then
		kill -KILL "$(<"$demo/run/pooler")"
		"$as_server" rm -f "$demo/run/pooler"
		sleep 3
		pool
	else
		sql -c "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'watcher'" >/dev/null
	fi
}

ask() { # TITLE COMMAND ARGUMENT...
	printf '\n%s%s%s  tacho %s\n' "$bold" "$1" "$plain" "${*:2}"
	"$tacho" "${@:2}" --tape "$demo/history"
}

show() { # START STORM-BEGIN STORM-END END
	local load=(--since "$(stamp "$1")" --until "$(stamp "$4")")
	ask 'The load' timeline "${load[@]}"
	ask 'The storm' top wait_event --since "$(stamp "$2")" --until "$(stamp "$3")" --n 5
	ask 'Who held them up?' blocking --at "$(stamp $(($2 + 8)))" --n 5
	ask 'Which statements?' top query_id "${load[@]}" --n 5
	ask 'What happened to the recorder?' markers "${load[@]}" --wide
	cat <<-END

		${bold}Server and recorder stay up.${plain}
		  the page    ${tacho#"$repo/"} web --tape .demo-record/history
		  live        ${tacho#"$repo/"} live --tape .demo-record/history
		  its log     .demo-record/recorder.log
		  stop        demo/record.sh --stop
	END
}

case ${1:-} in
--stop) stop; exit ;;
'') ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
stop
say "Starting a stock PostgreSQL with a shop of 230 MB"
create
record
say "A minute of load: pgbench, reports, a forgotten transaction, a lock storm"
break_off &
mapfile -t moments < <("$repo/demo/load.sh" "$bin" "$(dsn)")
[ ${#moments[@]} = 4 ] || die "the load has stopped early"
show "${moments[@]}"
