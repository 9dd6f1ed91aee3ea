#!/usr/bin/env bash
# usage: demo/run.sh [--dsn | --stop]
#
# Builds tacho into a private PostgreSQL, plays a minute of load on it and shows
# what tacho saw. Everything is in .demo of this repository, or in a directory
# under /var/tmp that .demo then points to. The cluster stays up.
#
#   --dsn   print its connection string
#   --stop  stop it and remove everything
#
# Environment: PG_CONFIG, as for make; NO_COLOR.
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=demo/say.sh
source "$repo/demo/say.sh"
link=$repo/.demo
as_server=$repo/tools/as-server.sh
cd / # the server's user may not see where we are

dsn() { printf "host='%s' port=%s user=postgres dbname=shop" "$demo/run" "$(<"$demo/port")"; }

stop() {
	[ -e "$link" ] || return 0
	demo=$(realpath "$link")
	if [ -e "$demo/data/postmaster.pid" ]; then
		"$as_server" "$(<"$demo/bin")/pg_ctl" -s -w -D "$demo/data" -m immediate stop || true
	fi
	rm -rf "$demo" "$link"
}

# The server's user must reach the place, and its socket's path must be short.
place() {
	local why=
	mkdir "$link"
	if ! "$as_server" test -x "$link" 2>/dev/null; then
		why="user $("$as_server" --user) may not enter this repository"
	elif [ ${#link} -gt 80 ]; then
		why="the path of this repository is too long for a socket"
	fi
	demo=$link
	if [ -n "$why" ]; then
		rmdir "$link"
		demo=$(mktemp -d /var/tmp/tacho-demo.XXXXXX)
		chmod 755 "$demo"
		ln -s "$demo" "$link"
		printf 'The cluster goes to %s, because\n%s.\n' "$demo" "$why"
	fi
}

free_port() {
	local port=54320
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo $port
}

create() {
	local config bin port
	config=$("$repo/tools/stage.sh" "$demo" 2>"$demo/build.log") ||
		{ cat "$demo/build.log" >&2; die "could not build the extension"; }
	bin=$(dirname "$config")
	port=$(free_port)
	echo "$bin" >"$demo/bin"
	ln -s "$bin/tacho" "$demo/tacho"
	echo "$port" >"$demo/port"
	mkdir -m 700 "$demo/data" "$demo/run"
	[ "$(id -u)" != 0 ] || chown "$("$as_server" --user)" "$demo/data" "$demo/run"
	"$as_server" "$bin/initdb" -D "$demo/data" -U postgres -A trust -N -E UTF8 \
		--locale=C >"$demo/initdb.log" 2>&1 || { cat "$demo/initdb.log" >&2; die "initdb failed"; }
	# Only the socket, and its directory belongs to the server's user alone: a
	# superuser without a password is nobody else's.
	"$as_server" tee -a "$demo/data/postgresql.conf" >/dev/null <<-END
		port = $port
		listen_addresses = ''
		unix_socket_directories = '$demo/run'
		shared_preload_libraries = 'tacho'
		shared_buffers = 16MB
		max_connections = 60
		max_wal_size = 512MB
		autovacuum_naptime = 10s
		logging_collector = off
		tacho.sample_interval = ${TACHO_DEMO_INTERVAL:-100ms}
	END
	"$as_server" "$bin/pg_ctl" -s -w -D "$demo/data" -l "$demo/data/server.log" start ||
		{ tail -n 20 "$demo/data/server.log" >&2; die "the server does not start"; }
	"$bin/createdb" --maintenance-db="$(dsn | sed 's/dbname=.*/dbname=postgres/')" shop
	"$bin/psql" -Xq -v ON_ERROR_STOP=1 -c 'create extension tacho' "$(dsn)"
	"$bin/psql" -Xq -v ON_ERROR_STOP=1 -f "$repo/demo/load/shop.sql" "$(dsn)"
	"$bin/pgbench" -i -q -s 5 "$(dsn)" >/dev/null 2>&1
}

case ${1:-} in
--stop)
	stop
	exit
	;;
--dsn)
	[ -e "$link/port" ] || die "there is no demo; make demo starts one"
	demo=$(realpath "$link")
	dsn
	echo
	exit
	;;
'') ;;
*)
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2
	exit 2
	;;
esac

stop
place
say "Starting a private PostgreSQL with a shop of 230 MB"
create
say "A minute of load: pgbench, reports, a forgotten transaction, a lock storm"
mapfile -t moments < <("$repo/demo/load.sh" "$(<"$demo/bin")" "$(dsn)")
[ ${#moments[@]} = 4 ] || die "the load has stopped early"
"$repo/demo/show.sh" "$demo" "$(dsn)" "${moments[@]}"
