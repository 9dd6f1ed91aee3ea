#!/usr/bin/env bash
# usage: tools/test-deb.sh [SUITE]
#
# Installs the packages of build/deb/SUITE (tools/package-deb.sh; default: bookworm) in a
# bare Debian root and tries them: debian/tests, an upgrade and a removal beside a running
# server, a purge, lintian. The last line is "N passed, N failed". Needs root and a
# network.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/deb.sh
source tools/deb.sh
if [ $# -gt 1 ] || [[ ${1:-} = -* ]]; then
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2
	exit 2
fi
suite=${1:-bookworm} passed=0 failed=0
root=$deb_cache/$suite/try
built=$PWD/build/deb/$suite
[ "$(id -u)" = 0 ] || die "Debian roots need root"
compgen -G "$built/*.deb" >/dev/null || die "there are no packages for $suite" "make them: make package-deb SUITES=$suite"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

inside() { deb_in -b "$built:/built" -b "$PWD/debian/tests:/tests" "$root" "$@"; }
# holds WHAT COMMAND...
holds() {
	local what=$1
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		sed -n 's/^ok - /  ok - /p' "$log"
		echo "ok - $what"
	else
		failed=$((failed + 1))
		echo "not ok - $what"
		tail -n 40 "$log" | sed 's/^/    /'
	fi
}

install() {
	exec 8>"$deb_cache/try.lock"
	flock 8
	deb_base "$suite"
	deb_copy "$suite" try
	# shellcheck disable=SC2016 # expanded inside
	inside bash -euc 'apt-get -qq -y --no-install-recommends -o APT::Sandbox::User=root install curl procps systemd \
		$(find /built -name "*.deb" ! -name "*dbgsym*")'
}

newer() { # packages of a version after this one
	# shellcheck disable=SC2016 # expanded inside
	inside bash -euc '
		mkdir -p /tmp/newer && cd /tmp/newer
		for each in $(find /built -name "*.deb" ! -name "*dbgsym*"); do
			dpkg-deb -R "$each" package
			sed -i "s/^Version: .*/&+newer/" package/DEBIAN/control
			dpkg-deb -b package . >/dev/null
			rm -r package
		done'
}

# a server with a history, while packages come and go
# shellcheck disable=SC2016 # expanded inside
lives() {
	inside bash -euc '
		version=$(ls /usr/lib/postgresql)
		say() { su postgres -c "psql -XAtqc \"$1\""; }
		count() { say "select coalesce(sum(ticks_observed), 0) from tacho.aas(since => now() - interval '\''1 hour'\'')"; }
		finish() { pg_dropcluster --stop "$version" main 2>/dev/null || true; }
		trap finish EXIT
		[ -e "/etc/postgresql/$version/main" ] || pg_createcluster "$version" main >/dev/null
		pg_conftool "$version" main set shared_preload_libraries "pg_stat_statements, tacho"
		pg_ctlcluster "$version" main start
		say "create extension tacho"
		until [ "$(count)" -gt 3 ]; do sleep 0.5; done
		before=$(head -n 1 "/var/lib/postgresql/$version/main/postmaster.pid")

		dpkg -i /tmp/newer/*.deb >/tmp/upgrade 2>&1 || { cat /tmp/upgrade; exit 1; }
		[ "$(head -n 1 "/var/lib/postgresql/$version/main/postmaster.pid")" = "$before" ] || { echo "an upgrade restarted the server"; exit 1; }
		grep -q "pg_ctlcluster $version main restart" /tmp/upgrade || { cat /tmp/upgrade; exit 1; }
		echo "ok - an upgrade restarts no server, and says which one runs the old library"
		ticks=$(count)
		until [ "$(count)" -gt "$((ticks + 2))" ]; do sleep 0.5; done
		echo "ok - the old library records with the new program"

		apt-get -qq -y purge "postgresql-$version-tacho" >/tmp/remove 2>&1 || { cat /tmp/remove; exit 1; }
		grep -q "cluster $version/main preloads tacho and will not start" /tmp/remove || { cat /tmp/remove; exit 1; }
		grep -qF "pg_conftool $version main set shared_preload_libraries '\''pg_stat_statements'\''" /tmp/remove || { cat /tmp/remove; exit 1; }
		echo "ok - a removal warns of the next start"
		say "select 1" >/dev/null
		echo "ok - the server goes on"
		apt-get -qq -y purge tacho >/tmp/purge 2>&1 || { cat /tmp/purge; exit 1; }
		[ -n "$(find "/var/lib/postgresql/$version/main/tacho" -type f)" ] && [ -n "$(find /var/lib/tacho/main -type f)" ] ||
			{ echo "a purge removed history"; exit 1; }
		echo "ok - a purge leaves the history"
		pg_conftool "$version" main set shared_preload_libraries pg_stat_statements
		pg_ctlcluster "$version" main restart
		say "select 1" >/dev/null
		echo "ok - the line of the warning lets the server start without the package"'
}

check() {
	deb_apt "$root" install lintian >/dev/null
	inside bash -euc 'lintian --allow-root --fail-on error,warning,info --tag-display-limit 0 -I /built/*.changes'
}

holds "the packages install on a bare $suite" install
if [ "$failed" = 0 ]; then
	holds "debian/tests/server" inside bash /tests/server
	holds "debian/tests/units" inside bash /tests/units
	holds "packages of a later version" newer
	holds "upgrade, removal and purge beside a running server" lives
	holds "no tag of lintian" check
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
