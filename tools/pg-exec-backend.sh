#!/usr/bin/env bash
# usage: tools/pg-exec-backend.sh [SOURCE]
#
# Builds PostgreSQL 15 with -DEXEC_BACKEND, the way Windows starts processes: every
# process attaches to shared memory and loads the libraries itself. Prints its
# pg_config:
#
#   PG_CONFIG=$(tools/pg-exec-backend.sh) tools/test-pg.sh
#
# SOURCE is a source tree (of any major); without it the source of 15 is downloaded
# (tools/pg-source.sh). About five minutes of two CPUs, once: the result is kept in
# $TACHO_PG_CACHE (default /var/cache/tacho/pg) as exec-backend.
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }

case ${1:-} in -*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
cache=${TACHO_PG_CACHE:-/var/cache/tacho/pg}/exec-backend
config=$cache/pg/bin/pg_config
[ ! -x "$config" ] || { echo "$config"; exit; }

mkdir -p "$cache"
exec 9>"$cache.lock"
flock 9
[ ! -x "$config" ] || { echo "$config"; exit; }
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ $# -gt 0 ]; then
	source=$(realpath -e "$1")
else
	source=$("$here/pg-source.sh" 15)
fi
[ -x "$source/configure" ] || die "\"$source\" is no source tree of PostgreSQL"
mkdir "$work/build"
cd "$work/build"
{
	"$source/configure" -q --prefix="$cache/pg" --without-readline --without-zlib --without-icu \
		--enable-tap-tests CPPFLAGS=-DEXEC_BACKEND CFLAGS=-O1 &&
	make -s -j"$(nproc)" MAKELEVEL=0 &&
	make -s MAKELEVEL=0 install &&
	make -s MAKELEVEL=0 -C contrib/pg_stat_statements install &&
	make -s MAKELEVEL=0 -C src/test/isolation install
} >"$cache/build.log" 2>&1 || { tail -n 20 "$cache/build.log" >&2; die "the build failed, see \"$cache/build.log\""; }
echo "$config"
