# stock.sh - a stock server (PG_CONFIG, default pg_config) with a shop in it, for
# the demos that install nothing. It is in a directory under /var/tmp that $link
# points to. To be sourced after say.sh, with repo and link set; sets demo.
# shellcheck shell=bash disable=SC2154

as_server=$repo/tools/as-server.sh
bin=$("${PG_CONFIG:-pg_config}" --bindir)
share=$("${PG_CONFIG:-pg_config}" --sharedir)/extension

dsn() { printf "host='%s' port=5432 user=postgres dbname=shop" "$demo/run"; }
sql() { "$bin/psql" -Xq -v ON_ERROR_STOP=1 "$(dsn)" "$@"; }
# whether an extension is already installed
has() { [ -e "$share/$1.control" ]; }

# stock_stop FILE…: ends processes whose ids are in files of the place, and the
# server, and removes everything.
stock_stop() {
	[ -L "$link" ] || return 0
	local name
	# its target may be gone
	demo=$(readlink "$link")
	for name; do
		if [ -f "$demo/$name" ]; then kill "$(<"$demo/$name")" 2>/dev/null || true; fi
	done
	if [ -e "$demo/data/postmaster.pid" ]; then
		"$as_server" "$bin/pg_ctl" -s -w -D "$demo/data" -m immediate stop || true
	fi
	rm -rf "$demo" "$link"
}

stock_place() { # NAME
	demo=$(mktemp -d "/var/tmp/$1.XXXXXX")
	chmod 755 "$demo"
	ln -s "$demo" "$link"
	mkdir -m 700 "$demo/data" "$demo/run"
	[ "$(id -u)" != 0 ] || chown "$("$as_server" --user)" "$demo/data" "$demo/run"
}

# stock_server EXTENSIONS [SETTING…]: preloads the extensions that are installed
stock_server() {
	local name preload=''
	for name in $1; do ! has "$name" || preload+=${preload:+,}$name; done
	shift
	"$as_server" "$bin/initdb" -D "$demo/data" -U postgres -A trust -N -E UTF8 --locale=C >"$demo/initdb.log" 2>&1 ||
		{ cat "$demo/initdb.log" >&2; die "initdb failed"; }
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$demo/run'" \
		"shared_preload_libraries = '$preload'" 'shared_buffers = 16MB' 'max_connections = 60' \
		'max_wal_size = 512MB' 'compute_query_id = on' "$@" |
		"$as_server" tee -a "$demo/data/postgresql.conf" >/dev/null
	"$as_server" "$bin/pg_ctl" -s -w -D "$demo/data" -l "$demo/data/server.log" start ||
		{ tail -n 20 "$demo/data/server.log" >&2; die "the server does not start"; }
	"$bin/createdb" --maintenance-db="$(dsn | sed 's/dbname=.*/dbname=postgres/')" shop
	for name in ${preload//,/ }; do sql -c "create extension $name"; done
	sql -f "$repo/demo/load/shop.sql"
	"$bin/pgbench" -i -q -s 5 "$(dsn)" >/dev/null 2>&1
}
