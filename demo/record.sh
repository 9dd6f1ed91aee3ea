#!/usr/bin/env bash
# usage: demo/record.sh [--stop]
#
# The demo where nothing can be installed: a stock PostgreSQL (PG_CONFIG, default
# pg_config), PgBouncer by transaction in front of it where there is one, and
# tacho record as a role with pg_monitor. In the middle of a minute of load the
# pooler, or else the connection, is killed. Everything is in a directory under
# /var/tmp that .demo-record of this repository points to; server and recorder
# stay up.
#
#   --stop  stop them and remove everything
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=demo/say.sh
source "$repo/demo/say.sh"
link=$repo/.demo-record
as_server=$repo/tools/as-server.sh
bin=$("${PG_CONFIG:-pg_config}" --bindir)
share=$("${PG_CONFIG:-pg_config}" --sharedir)/extension
tacho=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$repo/target}/release/tacho}
pgbouncer=$(PATH=$PATH:/usr/sbin command -v pgbouncer || true)
cd / # the server's user may not see where we are

dsn() { printf "host='%s' port=5432 user=postgres dbname=shop" "$demo/run"; }
sql() { "$bin/psql" -Xq -v ON_ERROR_STOP=1 "$(dsn)" "$@"; }
stamp() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }

stop() {
	[ -L "$link" ] || return 0
	local name
	# what it points to may be gone
	demo=$(readlink "$link")
	for name in recorder pooler; do
		if [ -f "$demo/run/$name" ]; then kill "$(<"$demo/run/$name")" 2>/dev/null || true; fi
	done
	if [ -e "$demo/data/postmaster.pid" ]; then
		"$as_server" "$bin/pg_ctl" -s -w -D "$demo/data" -m immediate stop || true
	fi
	rm -rf "$demo" "$link"
}

create() {
	local preload=''
	[ ! -e "$share/pg_stat_statements.control" ] || preload=pg_stat_statements
	demo=$(mktemp -d /var/tmp/tacho-demo-record.XXXXXX)
	chmod 755 "$demo"
	ln -s "$demo" "$link"
	mkdir -m 700 "$demo/data" "$demo/run"
	[ "$(id -u)" != 0 ] || chown "$("$as_server" --user)" "$demo/data" "$demo/run"
	"$as_server" "$bin/initdb" -D "$demo/data" -U postgres -A trust -N -E UTF8 --locale=C >"$demo/initdb.log" 2>&1 ||
		{ cat "$demo/initdb.log" >&2; die "initdb failed"; }
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$demo/run'" \
		"shared_preload_libraries = '$preload'" 'shared_buffers = 16MB' 'max_connections = 60' \
		'max_wal_size = 512MB' 'compute_query_id = on' |
		"$as_server" tee -a "$demo/data/postgresql.conf" >/dev/null
	"$as_server" "$bin/pg_ctl" -s -w -D "$demo/data" -l "$demo/data/server.log" start ||
		{ tail -n 20 "$demo/data/server.log" >&2; die "the server does not start"; }
	"$bin/createdb" --maintenance-db="$(dsn | sed 's/dbname=.*/dbname=postgres/')" shop
	[ -z "$preload" ] || sql -c "create extension $preload"
	sql -c 'create role watcher login' -c 'grant pg_monitor to watcher' -f "$repo/demo/load/shop.sql"
	"$bin/pgbench" -i -q -s 5 "$(dsn)" >/dev/null 2>&1
	conninfo="host=$demo/run port=5432 dbname=shop user=watcher"
	[ -z "$pgbouncer" ] || pool
}

# Its socket is in the directory that the server's user alone may enter.
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
	ask 'What happened to the recorder?' markers "${load[@]}"
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
