#!/usr/bin/env bash
# usage: demo/run.sh [--dsn | --stop]
#
# Builds tacho into a private PostgreSQL (demo/build.sh), plays a minute of load on it
# and shows what tacho saw. Everything is in .demo of this repository, or in a
# directory under /var/tmp that .demo then points to. The cluster and the page stay
# up. When the script is interrupted or fails, it stops and removes them.
#
#   --dsn   print the connection string of the cluster
#   --stop  stop both and remove everything
#
# Environment: PG_CONFIG, TACHO_PROFILE, as for demo/build.sh; NO_COLOR.
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=demo/say.sh
source "$repo/demo/say.sh"
link=$repo/.demo
as_server=$repo/tools/as-server.sh
cd / # the server's user may not be allowed into this directory

dsn() { printf "host='%s' port=%s user=postgres dbname=shop" "$demo/run" "$(<"$demo/port")"; }

stop() {
	[ -e "$link" ] || return 0
	demo=$(realpath "$link")
	[ ! -e "$demo/page.pid" ] || kill "$(<"$demo/page.pid")" 2>/dev/null || true
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

# free_port FIRST: a port without a listener, FIRST or a higher one
free_port() {
	local port=$1
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}

# create PG_CONFIG: the cluster with its shop
create() {
	local bin port
	bin=$(dirname "$1")
	port=$(free_port 54320)
	echo "$bin" >"$demo/bin"
	ln -s "$bin/tacho" "$demo/tacho"
	echo "$port" >"$demo/port"
	mkdir -m 700 "$demo/data" "$demo/run"
	[ "$(id -u)" != 0 ] || chown "$("$as_server" --user)" "$demo/data" "$demo/run"
	"$as_server" "$bin/initdb" -D "$demo/data" -U postgres -A trust -N -E UTF8 \
		--locale=C >"$demo/initdb.log" 2>&1 || { cat "$demo/initdb.log" >&2; die "initdb failed"; }
	# Only the socket, in a directory that belongs to the server's user: no one else can
	# use the superuser without a password.
	"$as_server" tee -a "$demo/data/postgresql.conf" >/dev/null <<-END
		port = $port
		listen_addresses = ''
		unix_socket_directories = '$demo/run'
		shared_preload_libraries = 'tacho'
		shared_buffers = 16MB
		max_connections = 260
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

# Starts the page on the recorded history. The token of its address is in a file.
open_page() {
	local token=$demo/token log=$demo/page.log
	(umask 077 && od -An -N 12 -tx1 /dev/urandom | tr -d ' \n' >"$token")
	[ "$(id -u)" != 0 ] || chown "$("$as_server" --user)" "$token"
	free_port 8432 >"$demo/page.port"
	setsid "$as_server" "$(<"$demo/bin")/tacho-web" --tape "$demo/data/tacho" --token-file "$token" \
		--listen "127.0.0.1:$(<"$demo/page.port")" </dev/null >"$log" 2>&1 &
	echo $! >"$demo/page.pid"
	until (exec 3<>"/dev/tcp/127.0.0.1/$(<"$demo/page.port")") 2>/dev/null; do
		kill -0 "$(<"$demo/page.pid")" 2>/dev/null || { cat "$log" >&2; die "tacho web has ended"; }
		sleep 0.1
	done
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
trap stop EXIT
trap 'exit 130' INT TERM
place
say "Building tacho, its page and the extension"
config=$("$repo/demo/build.sh" "$demo")
say "Starting a private PostgreSQL with a shop of 230 MB"
create "$config"
say "A minute of load: pgbench, reports, a forgotten transaction, a lock storm"
mapfile -t moments < <("$repo/demo/load.sh" "$(<"$demo/bin")" "$(dsn)")
[ ${#moments[@]} = 4 ] || die "the load has stopped early"
open_page
"$repo/demo/show.sh" "$demo" "$(dsn)" "${moments[@]}"
trap - EXIT
