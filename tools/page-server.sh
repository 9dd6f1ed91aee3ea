#!/usr/bin/env bash
# usage: tools/page-server.sh DIR INPUT
#
# Starts a server for the tests of the page: DIR/pg is its installation with the
# extension, DIR/data its data directory, DIR its socket. DIR/files is the history of the
# CSV files of INPUT (sessions, locks, statements, server, server_database, markers). The
# database "edition" has the same history in the SQL edition. The role "nobody" has no
# rights. TACHO_PROGRAM is the program, PG_CONFIG the installation to start from.
#
# Prints the directory of the programs. Then it reads lines with arguments of pg_ctl,
# such as "stop -m immediate", and answers each with "done". At the end of standard
# input the server ends.
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd -P)
dir=$(realpath "$1") input=$(realpath "$2")
config=$("$here/stage.sh" "$dir")
bin=${config%/*}
as() { "$here/as-server.sh" "$@"; }
sql() { "$bin/psql" -qXh "$dir" -U postgres -v ON_ERROR_STOP=1 -d "$@" >&2; }

chmod 755 "$dir"
[ "$(id -u)" != 0 ] || chown "$("$here/as-server.sh" --user)" "$dir"
as "$bin/initdb" -D "$dir/data" -A trust -N -U postgres >&2
cat >>"$dir/data/postgresql.conf" <<-END
	shared_preload_libraries = 'tacho'
	listen_addresses = ''
	unix_socket_directories = '$dir'
	fsync = off
END
with=()
for each in locks statements server server_database markers; do with+=("--with=$each=$input/$each"); done
"$bin/tacho" import sessions "$input/sessions" "${with[@]}" --tape "$dir/files" >&2
[ "$(id -u)" != 0 ] || chown -R --reference="$dir/data" "$dir/files"
as "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >&2

sql postgres -c 'CREATE EXTENSION tacho' -c 'CREATE ROLE nobody LOGIN' -c 'CREATE DATABASE edition'
sql edition -f "$here/../sql/tacho.sql" >/dev/null 2>&1
for each in sessions locks markers; do
	columns=$(head -n 1 "$input/$each" | tr -d '\r' | sed 's/,/" text, "/g')
	sql edition -c "CREATE TABLE $each (\"$columns\" text)" -c "\\copy $each from '$input/$each' csv header"
done
sql edition -c "SELECT tacho.import_sessions('sessions', locks => 'locks')" -c "SELECT tacho.import_markers('markers')" >/dev/null
control() { as "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w "$@" >&2; }
echo "$bin"
while read -r -a arguments; do
	control "${arguments[@]}"
	echo "done"
done
control stop -m immediate || true
