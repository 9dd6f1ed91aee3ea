# shellcheck shell=bash
# Debian roots in which packages are built and tried: sourced by package-deb.sh and
# test-deb.sh. Everything is kept below $TACHO_DEB_CACHE, a directory for each suite:
#
#   base    the bare system of the suite with its security updates.
#   build   base with the build dependencies of debian/control.in.
#   target  the files that cargo has compiled for the suite.
#   vendor  the crates of Cargo.lock (beside the suites, the same for all).

deb_cache=${TACHO_DEB_CACHE:-/var/cache/tacho/deb}

die() { printf 'error: %s\n' "$@" >&2; exit 1; }
say() { echo "package-deb: $*" >&2; }

# deb_in [-n] [-b FROM:TO]... ROOT COMMAND...: runs COMMAND in ROOT, with -n without a
# network, with the directory FROM of this system at TO. Mounts and processes are gone
# when the command ends.
deb_in() {
	local option offline='' binds=() OPTIND=1
	while getopts nb: option; do
		case $option in n) offline=--net ;; b) binds+=("$OPTARG") ;; *) return 2 ;; esac
	done
	shift $((OPTIND - 1))
	# shellcheck disable=SC2016 # expanded inside
	env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "${deb_env[@]}" \
		unshare --mount --propagation private --pid --fork --kill-child $offline bash -euc '
		root=$1; shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		while [ "$1" != -- ]; do
			mkdir -p "$root${1#*:}"
			mount --bind "${1%%:*}" "$root${1#*:}"
			shift
		done
		shift
		exec chroot "$root" "$@"' - "$1" "${binds[@]}" -- "${@:2}"
}
deb_env=()

deb_apt() { # ROOT ARGUMENT...: apt-get without questions
	deb_in "$1" apt-get -qq -y -o Acquire::Retries=3 -o Acquire::Languages=none \
		-o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root --no-install-recommends "${@:2}"
}

# forky with PostgreSQL 19, the only major that packages are built for, from experimental
deb_experimental() { # ROOT
	sed -n '1s/ forky / experimental /p' "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/experimental.list"
	printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 990' \
		>"$1/etc/apt/preferences.d/experimental"
	mkdir -p "$1/etc/postgresql-common"
	echo 19 >"$1/etc/postgresql-common/supported_versions"
}

deb_base() { # SUITE: makes the bare root
	local suite=$1 dir=$deb_cache/$1/base release=$1 url security
	[ ! -e "$dir.made" ] || return 0
	[ "$suite" != experimental ] || release=forky
	url=$(tools/debian-mirror.sh) # without one debootstrap chooses
	security=$(tools/debian-mirror.sh security)
	command -v debootstrap >/dev/null || tools/prereq.sh matrix >&2
	say "making a bare Debian $release"
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	debootstrap --variant=minbase --include=ca-certificates "$release" "$dir" ${url:+"$url"} ${url:+sid} >"$dir.log" 2>&1 ||
		die "debootstrap of $release failed: $(tail -n 3 "$dir.log")"
	[ -z "$security" ] || echo "deb $security $release-security main" >>"$dir/etc/apt/sources.list"
	[ "$suite" = "$release" ] || deb_experimental "$dir"
	apt-config dump | grep -E '^Acquire::(http|https)::Proxy ' >"$dir/etc/apt/apt.conf.d/80proxy" || true
	# a throw-away system: no syncs, no services
	echo force-unsafe-io >"$dir/etc/dpkg/dpkg.cfg.d/unsafe"
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod +x "$dir/usr/sbin/policy-rc.d"
	cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
	cp -L /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/" 2>/dev/null || true
	touch "$dir.made"
}

deb_copy() { # SUITE NAME: a fresh copy of the bare root, up to date
	rm -rf --one-file-system "${deb_cache:?}/$1/$2" "$deb_cache/$1/$2.made"
	cp -a "$deb_cache/$1/base" "$deb_cache/$1/$2"
	deb_apt "$deb_cache/$1/$2" update && deb_apt "$deb_cache/$1/$2" dist-upgrade
}
