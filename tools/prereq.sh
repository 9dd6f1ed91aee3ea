#!/usr/bin/env bash
# usage: tools/prereq.sh [-n] extension|sql|page|fleet|build|demo|test|lint|matrix|container
#
# Checks that this system has the packages that a make target needs. Installs missing
# ones from Debian or Ubuntu, as root or with sudo, and prints their names; -n only
# prints. If apt's Rust is too old, apt's rustup provides it.
#
#   extension   C compiler, make, PostgreSQL 15 or later with its headers.
#   sql         the packages of extension, and pg_cron where apt has it.
#   page        Node and npm, and the browser of the page's tests.
#   fleet       Python with its environments, and npm.
#   build       the packages of extension, Rust as new as Cargo.toml asks for, libpq.
#   demo        the packages of build, and Node and npm for the page.
#   test        the packages of build and sql, and those for TAP. lint: with shellcheck, no pg_cron.
#   matrix      the packages of test, and those for other majors. container: podman, debootstrap.
#
# PG_CONFIG names the PostgreSQL that counts (default: pg_config in PATH).
set -euo pipefail

die() { printf 'error: %s\n' "$@" >&2; exit 1; }
have() { command -v "$1" >/dev/null; }

dry=0
if [ "${1:-}" = -n ]; then dry=1; shift; fi
level=${1:-}
case $level in extension | sql | page | fleet | build | demo | test | lint | matrix | container) ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
repo=$(cd "$(dirname "$0")/.." && pwd)
PATH=$PATH:/usr/sbin:$HOME/.cargo/bin
packages=() rust=''

major() { # the major of the configured PostgreSQL, nothing if it is unusable
	local config=${PG_CONFIG:-pg_config} version
	have "$config" && version=$("$config" --version) || return 0
	[ -x "$("$config" --bindir)/postgres" ] || return 0
	[ -e "$("$config" --includedir-server)/postgres.h" ] || return 0
	[ -e "$("$config" --pgxs)" ] || return 0
	version=${version#PostgreSQL }
	echo "${version%%[^0-9]*}"
}

# want COMMAND:PACKAGE...
want() { local pair; for pair; do have "${pair%:*}" || packages+=("${pair#*:}"); done; }

at_least() { # VERSION CANDIDATE
	[ -n "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

candidate() { apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9].*)/\1/p'; }

# The distribution's Rust if it is new enough (Debian's stable releases have a
# second, newer one, for their browsers), else rustup.
choose_rust() {
	[ -e /etc/ssl/certs/ca-certificates.crt ] || packages+=(ca-certificates)
	if have rustup; then
		rust=rustup
	elif at_least "$wanted" "$(candidate rustc)"; then
		packages+=(rustc cargo)
		[ "$level" != lint ] || packages+=(rust-clippy rustfmt)
	elif at_least "$wanted" "$(candidate rustc-web)"; then
		packages+=(rustc-web cargo-web)
		[ "$level" != lint ] || packages+=(rust-web-clippy rustfmt-web)
	else
		[ -z "$(candidate rustup)" ] || packages+=(rustup)
		rust=rustup
	fi
}

newest_server() { # of what apt offers, with headers
	apt-cache search --names-only '^postgresql-server-dev-[0-9]+$' |
		sed -E 's/^postgresql-server-dev-([0-9]+) .*/\1/' | sort -n | tail -n 1
}

look_for_cron() { # where the server is the distribution's
	local share=/usr/share/postgresql/$found
	[ "$("${PG_CONFIG:-pg_config}" --sharedir 2>/dev/null || echo "$share")" != "$share" ] ||
		[ -e "$share/extension/pg_cron.control" ] || [ -z "$(candidate "postgresql-$found-cron")" ] || packages+=("postgresql-$found-cron")
}

look() {
	local found; packages=() rust=
	[ "$level" != page ] || { want node:nodejs npm:npm chromium:chromium; return 0; }
	case $level in container) want podman:podman runc:runc debootstrap:debootstrap; return 0 ;; esac
	[ "$level" != fleet ] || { python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv); want node:nodejs npm:npm; return 0; }
	want make:make; have gcc || have cc || packages+=(gcc libc6-dev)
	found=$(major)
	if [ -z "$found" ]; then
		[ "${PG_CONFIG:-pg_config}" = pg_config ] ||
			die "\"$PG_CONFIG\" names no PostgreSQL with server and headers"
		found=$(newest_server)
		packages+=("postgresql-${found:-server}" "postgresql-server-dev-${found:-all}")
	elif [ "$found" -lt 15 ]; then
		die "PostgreSQL $found is too old, tacho needs 15" \
			"set PG_CONFIG to the pg_config of a newer one"
	fi
	case $level in sql | test | matrix) look_for_cron ;; esac
	[[ $level != extension && $level != sql ]] || return 0
	[ -e "$(pg_config --includedir 2>/dev/null)/libpq-fe.h" ] || packages+=(libpq-dev)
	if ! have cargo || ! at_least "$wanted" "$(rustc --version 2>/dev/null | cut -d' ' -f2)" ||
		{ [ "$level" = lint ] && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; }; then
		choose_rust
	fi
	case $level in build) return 0 ;; demo) want node:nodejs npm:npm; return 0 ;; esac
	want tmux:tmux promtool:prometheus amtool:prometheus-alertmanager nginx:nginx pgbouncer:pgbouncer openssl:openssl curl:curl
	perl -MIPC::Run -e 1 2>/dev/null || packages+=(libipc-run-perl)
	[ "$level" != lint ] || want shellcheck:shellcheck
	[ "$level" != matrix ] || want debootstrap:debootstrap pip3:python3-pip unzip:unzip unshare:util-linux
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
	-o DPkg::Lock::Timeout=300 --no-install-recommends "$@"; }

# A server package starts a cluster when it is installed; we need none.
no_cluster=/etc/postgresql-common/createcluster.d/tacho-build.conf
install_packages() {
	echo "prereq: installing ${packages[*]}"
	[ $dry = 0 ] || return 0
	as_root mkdir -p "${no_cluster%/*}"
	echo 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
	trap 'as_root rm -f "$no_cluster"' EXIT
	# outdated lists name packages that no longer exist
	apt install "${packages[@]}" >/dev/null ||
		{ apt update && apt install "${packages[@]}" >/dev/null; }
}

install_rust() {
	echo "prereq: installing the stable Rust with rustup, for user $(id -un)"
	[ $dry = 0 ] || return 0
	have rustup || die "Rust $wanted or later is needed, and apt has neither it nor rustup" \
		"install it as https://rustup.rs describes, then run this again"
	rustup toolchain install stable --profile minimal -c clippy -c rustfmt >&2
	rustup default stable >&2
}

cd "$repo" # a toolchain file there counts
wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$repo/Cargo.toml")
look
[ ${#packages[@]} -gt 0 ] || [ -n "$rust" ] || exit 0
have apt-get || die "missing: ${packages[*]} ${rust:+Rust $wanted}" \
	"install them by hand, this system has no apt-get"
[ "$(id -u)" = 0 ] || have sudo || die "missing: ${packages[*]}" "run this as root"
if [ -z "$(find /var/lib/apt/lists -name '*Packages*' -print -quit 2>/dev/null)" ]; then
	echo "prereq: updating the package lists"
	apt update
	look
fi
[ ${#packages[@]} = 0 ] || install_packages
[ -z "$rust" ] || install_rust
