#!/usr/bin/env bash
# usage: entrypoint.sh postgres [ARGUMENT]...
#
# Makes the cluster of $PGDATA if there is none, runs the files of /docker-entrypoint-initdb.d
# in it, and becomes the server: process 1 of the container, as user postgres.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
if [ "$(id -u)" = 0 ]; then
	chown postgres: "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	initdb -D "$PGDATA" -A trust >/dev/null
	pg_ctl -D "$PGDATA" -w start -o "-c listen_addresses=''" >/dev/null
	for each in /docker-entrypoint-initdb.d/*.sql; do
		psql -X -q -v ON_ERROR_STOP=1 -d postgres -f "$each"
	done
	pg_ctl -D "$PGDATA" -w -m fast stop >/dev/null
fi
exec "$@"
