#!/usr/bin/env bash
# usage: tools/pg-major.sh MAJOR
#
# Provides an installation of PostgreSQL MAJOR (15 to 19) with everything that
# building and testing an extension needs, and prints two lines: the root
# directory it lives in ("/" is this system) and its pg_config inside that
# root. In this order:
#
#   the packages of this system, if PGDG or the distribution has put the server
#       and its headers into /usr/lib/postgresql/MAJOR
#   16: the wheel "pgserver" of the Python package index, used on this system
#   else a Debian root made by debootstrap: 15 bookworm, 17 trixie, 18 forky,
#       19 forky and experimental
#
# Installations are kept under $TACHO_PG_CACHE and used again; remove a directory there
# to make it again. Making and using a Debian root (tools/in-pg.sh) needs root. The
# mirror: tools/debian-mirror.sh.
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }
say() { echo "pg-major: $*" >&2; }

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
major=$1
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" = 0 ]; then
	cache=${TACHO_PG_CACHE:-/var/cache/tacho/pg}
else
	cache=${TACHO_PG_CACHE:-${HOME:?}/.cache/tacho/pg}
fi
recipe=$(cat "$here/pg-major.sh" "$here/pg-root.sh" | sed '/^ *#/d' | cksum | cut -d' ' -f1)
apt=(apt-get -qq -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300
	--no-install-recommends)

# Installs packages on this system, for the programs used here.
need() { # PROGRAM PACKAGE...
	command -v "$1" >/dev/null && return
	[ "$(id -u)" = 0 ] || die "could not find $1; install it: apt-get install ${*:2}"
	say "installing ${*:2}"
	DEBIAN_FRONTEND=noninteractive "${apt[@]}" install "${@:2}" >/dev/null ||
		{ "${apt[@]}" update && "${apt[@]}" install "${@:2}" >/dev/null; }
}

make_wheel() { # DIR
	local pg=$1/pgserver/pginstall modules
	need pip3 python3-pip
	need unzip unzip
	say "downloading the wheel of PostgreSQL 16"
	pip3 download -q --no-deps --only-binary=:all: --python-version 3.11 \
		--platform "manylinux2014_$(uname -m)" -d "$1" pgserver==0.1.4 >&2
	unzip -q "$1"/pgserver-*.whl -d "$1"
	rm "$1"/pgserver-*.whl

	# its programs search libpq beside the package: same length, other directory
	grep -rlZF ORIGIN/../../../pgserver.libs "$pg" | xargs -0 \
		sed -i 's#ORIGIN/../../../pgserver.libs#ORIGIN/../lib/./././././././.#g'
	cp "$1"/pgserver.libs/* "$pg/lib/"
	chmod -R a+rX "$1"
	find "$pg/bin" "$pg/lib" -type f -path '*/[bpr]*/*' -exec chmod a+x {} +

	# it lacks the Perl modules of the TAP tests
	for modules in /usr/lib/postgresql/{16,17,15,18}/lib/pgxs/src/test/perl \
		"$cache"/1[578]/root/usr/lib/postgresql/1?/lib/pgxs/src/test/perl; do
		[ ! -d "$modules" ] || break
	done
	if [ -d "$modules" ]; then
		cp -R "$modules" "$pg/lib/postgresql/pgxs/src/test/perl"
	fi
}

make_root() { # DIR SUITE
	local dir=$1 suite=$2 url
	url=$("$here/debian-mirror.sh") || true # without one debootstrap chooses
	[ "$(id -u)" = 0 ] || die "making a root of PostgreSQL $major needs root"
	need debootstrap debootstrap
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		need debian-archive-keyring debian-archive-keyring
	say "making a Debian $suite root for PostgreSQL $major"
	# the script of sid does for every later release
	debootstrap --variant=minbase --include=ca-certificates "$suite" "$dir" \
		${url:+"$url"} sid >"$dir.log" 2>&1 ||
		{ tail -n 5 "$dir.log" >&2; die "debootstrap of $suite failed, see $dir.log"; }
	if [ "$major" = 19 ]; then
		sed "s/ $suite / experimental /" "$dir/etc/apt/sources.list" \
			>"$dir/etc/apt/sources.list.d/experimental.list"
	fi
	cp "$here/pg-root.sh" "$dir/tmp/"
	apt-config dump | grep -E '^Acquire::(http|https)::Proxy ' \
		>"$dir/etc/apt/apt.conf.d/80proxy" || true
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount --propagation private bash -euc '
		mount --rbind /proc "$1/proc"
		mount --rbind /dev "$1/dev"
		cp -L /etc/resolv.conf "$1/etc/resolv.conf"
		cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/" 2>/dev/null || :
		exec chroot "$1" /bin/bash /tmp/pg-root.sh "$2"' \
		- "$dir" "$major" >>"$dir.log" 2>&1 ||
		{ tail -n 5 "$dir.log" >&2; die "PostgreSQL $major failed to install, see $dir.log"; }
}

case $major in 15) suite=bookworm ;; 16) suite= ;; 17) suite=trixie ;; 18 | 19) suite=forky ;;
*) die "no recipe for PostgreSQL major \"$major\"" ;;
esac

native=/usr/lib/postgresql/$major
if [ -x "$native/bin/postgres" ] && [ -e "$native/lib/pgxs/src/makefiles/pgxs.mk" ]; then
	printf '/\n%s\n' "$native/bin/pg_config"
	exit
fi

mkdir -p "$cache"
exec 9>"$cache/$major.lock"
flock 9
keep=$cache/$major
if [ "$(cat "$keep/recipe" 2>/dev/null)" != "$recipe" ]; then
	rm -rf --one-file-system "$keep" "$keep.new"
	mkdir "$keep.new"
	if [ "$major" = 16 ]; then make_wheel "$keep.new"; else make_root "$keep.new/root" "$suite"; fi
	echo "$recipe" >"$keep.new/recipe"
	mv "$keep.new" "$keep"
fi
if [ "$major" = 16 ]; then
	printf '/\n%s\n' "$keep/pgserver/pginstall/bin/pg_config"
else
	printf '%s\n%s\n' "$keep/root" "$native/bin/pg_config"
fi
