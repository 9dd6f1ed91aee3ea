#!/usr/bin/env bash
# usage: tools/pg-hints.sh MAJOR
#
# Installs pg_hint_plan where PostgreSQL MAJOR has a Debian root of its own
# (tools/pg-major.sh), for the test plan_hints. Does nothing elsewhere, or where it is
# installed. The test says if it had to do without.
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$("$here/pg-major.sh" "$1" | head -n 1)
[ "$root" != / ] && [ ! -e "$root/usr/lib/postgresql/$1/lib/pg_hint_plan.so" ] || exit 0
# shellcheck disable=SC2016 # expanded inside
exec "$here/in-pg.sh" "$1" bash -euc '
	apt=(apt-get -qq -y -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false
		-o APT::Sandbox::User=root -o DPkg::Lock::Timeout=300 --no-install-recommends)
	[ ! -e /etc/apt/sources.list.d/experimental.list ] || apt+=(-t experimental)
	export DEBIAN_FRONTEND=noninteractive
	trap "rm -rf /var/lib/apt/lists/*" EXIT
	mkdir -p /var/lib/apt/lists/partial
	"${apt[@]}" update
	"${apt[@]}" install "postgresql-$1-pg-hint-plan"' - "$1"
