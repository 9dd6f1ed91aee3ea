#!/usr/bin/env bash
# usage: tools/test-deb.sh [SUITE]
#
# Installs the packages of build/deb/SUITE (tools/package-deb.sh; default: bookworm) in a
# bare Debian root and tries them. It times the commands of README.md, and checks the
# list of files. It runs debian/tests and lintian. It upgrades the packages under load,
# and removes and purges them beside a running server. The last line is "N passed, N
# failed". Needs root and a network.
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

major=$(basename "$(compgen -G "$built/postgresql-*-tacho_*.deb")" | cut -d- -f2)

inside() { deb_in -b "$built:/built" -b "$PWD:/src" "$root" "$@"; }
# holds WHAT COMMAND...
holds() {
	local what=$1
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		sed -nE 's/^(ok - |[0-9.]+ s  )/  \1/p' "$log"
		echo "ok - $what"
	else
		failed=$((failed + 1))
		echo "not ok - $what"
		tail -n 40 "$log" | sed 's/^/    /'
	fi
}

# what the host of a server has before
server() {
	exec 8>"$deb_cache/try.lock"
	flock 8
	deb_base "$suite"
	deb_copy "$suite" try
	deb_apt "$root" install curl iproute2 procps sudo systemd "postgresql-$major"
	# a person answers yes
	echo 'APT::Get::Assume-Yes "true"; APT::Sandbox::User "root";' >"$root/etc/apt/apt.conf.d/90yes"
}

files() {
	# shellcheck disable=SC2016 # expanded inside
	inside bash -euc '
		for each in tacho tacho-doctor tacho-live tacho-mcp tacho-record tacho-ship tacho-watch tacho-web; do
			printf "/usr/bin/%s\n/usr/share/man/man1/%s.1.gz\n" $each $each
		done >/tmp/wanted
		printf "/usr/lib/systemd/system/tacho-%s.service\n" record ship watch web >>/tmp/wanted
		printf "/usr/lib/postgresql/$1/%s\n" bin/tacho lib/tacho.so lib/tacho-parent >>/tmp/wanted
		printf "/usr/share/postgresql/$1/extension/%s\n" tacho.control tacho--0.2.sql tacho--0.1--0.2.sql >>/tmp/wanted
		/src/tools/deb-manual-pages.sh | sed "s,^,/usr/share/doc/tacho/docs/," >>/tmp/wanted
		dpkg -L tacho "postgresql-$1-tacho" | sed "s,^/lib/,/usr/lib/," |
			grep -E "^/usr/(bin|lib/systemd|lib/postgresql|share/postgresql|share/doc/tacho/docs)/|/man1/tacho(-(doctor|live|mcp|record|ship|watch|web))?\.1" |
			while read -r each; do [ -d "$each" ] || echo "$each"; done | sort | diff <(sort /tmp/wanted) -
		grep -q "^Files: vendor/tokio-" /usr/share/doc/tacho/copyright
		grep -q "uplot (Expat)" /usr/share/doc/tacho/copyright' - "$major"
}

# in a network of its own: a demo of this system may have the port of tacho-web
units() { inside unshare --net bash -euc 'ip link set lo up; exec bash /src/debian/tests/units'; }

newer() { # packages of a version after this one
	# shellcheck disable=SC2016 # expanded inside
	inside bash -euc '
		rm -rf /tmp/newer && mkdir /tmp/newer && cd /tmp/newer
		for each in $(find /built -name "*.deb" ! -name "*dbgsym*"); do
			dpkg-deb -R "$each" package
			sed -i "s/^Version: .*/&+newer/" package/DEBIAN/control
			dpkg-deb -Zgzip -z1 -b package . >/dev/null
			rm -r package
		done'
}

check() {
	deb_apt "$root" install lintian >/dev/null
	# bookworm asks for overrides that later lintians do not know or need. Its version of the standards
	# is older. Some overrides name texts of programs: the options of the compiler decide which exist.
	inside bash -euc 'lintian --allow-root --fail-on none --tag-display-limit 0 -I \
		--suppress-tags alien-tag,out-of-date-standards-version /built/*.changes >/tmp/tags
		! grep "^[EWI]: " /tmp/tags | grep -v \
			-e "-override spelling-error-in-binary" \
			-e "unused-override hardening-no-fortify-functions"'
}

holds "a bare $suite with PostgreSQL $major" server
[ "$failed" != 0 ] || holds "the commands of README.md" inside /src/tools/deb-stopwatch.sh "$suite" "$major"
if [ "$failed" = 0 ]; then
	holds "the packages have their files" files
	holds "debian/tests/server" inside bash /src/debian/tests/server
	holds "debian/tests/units" units
	holds "packages of a later version" newer
	holds "upgrade, removal and purge beside a running server" inside /src/tools/deb-lives.sh "$major"
	holds "no tag of lintian" check
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
