#!/usr/bin/env bash
# usage: tools/as-server.sh COMMAND...
#        tools/as-server.sh --user
#
# Runs COMMAND as a user that PostgreSQL servers may run as. This is the caller, unless
# the caller is root. For root it is TACHO_SERVER_USER if set, else "postgres" if there
# is one, else "nobody". --user prints the name.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

if [ "$(id -u)" != 0 ]; then
	user=$(id -un)
elif [ -n "${TACHO_SERVER_USER:-}" ]; then
	user=$TACHO_SERVER_USER
elif id -u postgres >/dev/null 2>&1; then
	user=postgres
else
	user=nobody
fi

if [ "$1" = --user ]; then
	echo "$user"
elif [ "$(id -u)" != 0 ]; then
	exec "$@"
else
	exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups \
		env HOME=/tmp USER="$user" LOGNAME="$user" "$@"
fi
