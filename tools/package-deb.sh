#!/usr/bin/env bash
# usage: tools/package-deb.sh [-t] [SUITE]...
#
# Builds the Debian packages of the commit HEAD for each SUITE (bookworm, trixie,
# forky, experimental; default: bookworm) into build/deb/SUITE: the source package,
# tacho and postgresql-MAJOR-tacho. Crates and page are put into the source package
# before; the build itself runs in a root made by debootstrap, without a network.
# Roots and compiled crates are kept below /var/cache/tacho/deb (TACHO_DEB_CACHE).
# Prints the time of each build. Needs root.
#
# Between releases the changelog has a version such as 0.2.0~dev. The packages have
# date and commit in its place. So a later commit upgrades an earlier one, and the
# release upgrades both.
#
#   -t  a trial: programs without optimisation, as "make demo" compiles them. The
#       packages are for inspection: their programs are slow and large
#
# TACHO_DEB_JOBS: processes of cargo (default: one for each CPU).
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/deb.sh
source tools/deb.sh
options="nocheck parallel=${TACHO_DEB_JOBS:-$(nproc)}"
while getopts t option; do
	case $option in t) options+=" trial" ;; *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac
done
shift $((OPTIND - 1))
[ "$(id -u)" = 0 ] || die "Debian roots need root"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# 0.2.0~dev of the changelog becomes 0.2.0~20261130.070015.1a2b3c4d, the date and the commit
dev=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S).$(git rev-parse --short=8 HEAD)
version=$(git show HEAD:debian/changelog | sed -n "1s/^tacho (\(.*\)-[0-9]*).*/\1/p" | sed "s/~dev\$/~$dev/")
# the same directory for all commits between two releases: cargo compiles a crate again in another one
name=tacho-${version%%[~-]*} orig=$deb_cache/tacho_$version
compiled=(. ':!debian' ':!docs' ':!tools' ':!*.md')
pack=(tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct -- "${compiled[@]}")" -cJf)

# the crates of Cargo.lock, and their archive, which takes a minute to compress
vendor() {
	local sum made=$deb_cache/vendor
	sum=$(cat Cargo.lock tools/deb-vendor.py | sha256sum | cut -c 1-16)
	[ "$(cat "$made.sum" 2>/dev/null)" != "$sum" ] || return 0
	say "fetching the crates"
	rm -rf "$made" "$made.sum"
	tools/deb-vendor.py "$made" >&2
	XZ_OPT='-2 -T0' "${pack[@]}" "$made.tar.xz" --mtime=@0 -C "$deb_cache" vendor
	echo "$sum" >"$made.sum"
}

# source SUITE: the source package, unpacked, in the build directory of the suite
source_tree() {
	local suite=$1 work=$deb_cache/$1/work root=$deb_cache/$1/build number
	rm -rf "$work"
	mkdir -p "$work"
	cp "$deb_cache/vendor.tar.xz" "$work/tacho_$version.orig-vendor.tar.xz"
	cp "$orig.orig.tar.xz" "$work/"
	tar -C "$work" -xf "$orig.orig.tar.xz"
	tar -C "$work/$name" -xf "$deb_cache/vendor.tar.xz"
	git archive HEAD debian | tar -C "$work/$name" -xf -
	cp "$deb_cache/copyright" "$work/$name/debian/copyright"
	# Packages of a later release of Debian replace packages of an earlier one. A revision with a
	# point would be an upload by somebody who is not the maintainer.
	case $suite in bookworm) number=12 ;; trixie) number=13 ;; forky) number=14 ;; *) number=14+1 ;; esac
	sed -i "1s/(.*-\([0-9]*\)) [A-Za-z]*;/($version-\1~deb$number) $suite;/" "$work/$name/debian/changelog"
	deb_in -b "$work:/build" "$root" /bin/sh -c "cd /build/$name && pg_buildext updatecontrol"
}

# cargo looks at times of files, and these may be older than the files of the build
# before: if the sources differ, cargo's notes about our crates go
forget() { # TARGET
	local sum
	sum=$({ git ls-tree -r HEAD | grep -vE $'\t(debian|docs|tools)/|\\.md$'
		find page/dist -type f -exec sha256sum {} + | sort; } | sha256sum)
	[ "$(cat "$1/sources" 2>/dev/null)" = "$sum" ] || rm -rf "$1"/release/.fingerprint/tacho-*
	echo "$sum" >"$1/sources"
}

# the root with the build dependencies; another one when these have changed
build_root() {
	local suite=$1 root=$deb_cache/$1/build depends
	depends=$(sed '/^Package:/,$d' debian/control.in; echo "$suite")
	[ "$(cat "$root.made" 2>/dev/null)" != "$depends" ] || return 0
	deb_base "$suite"
	say "installing the build dependencies on $suite"
	{
		deb_copy "$suite" build
		mkdir -p "$root/tmp/depends/debian"
		printf '%s\n\nPackage: tacho\nArchitecture: any\n' "${depends%$'\n'*}" >"$root/tmp/depends/debian/control"
		deb_apt "$root" install build-essential fakeroot
		deb_apt "$root" build-dep /tmp/depends
		# postgresql-server-dev-all is of forky
		[ "$suite" != experimental ] || deb_apt "$root" install postgresql-server-dev-19
	} >"$root.log" 2>&1 || die "the build dependencies failed to install:" "$(tail -n 5 "$root.log")"
	echo "$depends" >"$root.made"
}

build() {
	# experimental has the compiler and the C library of forky
	local suite=$1 dir=$deb_cache/$1 out=build/deb/$1 target=$deb_cache/${1/experimental/forky}/target
	build_root "$suite"
	source_tree "$suite"
	mkdir -p "$target"
	forget "$target"
	say "building $version for $suite, see $dir/package.log"
	deb_env=("DEB_BUILD_OPTIONS=$options" "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" CARGO_TARGET_DIR=/target
		"RUSTC_WRAPPER=/build/$name/tools/rustc-time.sh" TACHO_RUSTC_TIMES=/target/times)
	: >"$target/times"
	TIMEFORMAT="package-deb: %R s, %U + %S s of CPU; tools/build-times.sh -t $target/times: the crates"
	time deb_in -n -b "$dir/work:/build" -b "$target:/target" "$dir/build" /bin/sh -c \
		"cd /build/$name && exec nice dpkg-buildpackage -us -uc" >"$dir/package.log" 2>&1 ||
		die "the packages were not built:" "$(tail -n 20 "$dir/package.log")"
	deb_env=()
	rm -rf "$out"
	mkdir -p "$out"
	find "$dir/work" -maxdepth 1 -type f -exec mv -t "$out" {} +
	rm -rf "$dir/work"
	ls "$out"/*.deb
}

tools/prereq.sh build
mkdir -p "$deb_cache"
exec 9>"$deb_cache/lock"
flock 9
vendor
tools/page.sh
[ -e page/dist/index.html ] || die "the page was not built"
tools/deb-copyright.py "$deb_cache/vendor" >"$deb_cache/copyright"
rm -rf "${deb_cache:?}/$name"
git archive --prefix="$name/" HEAD | tar -C "$deb_cache" -xf -
rm -rf "$deb_cache/$name/debian"
cp -R page/dist "$deb_cache/$name/page/dist"
rm -f "$deb_cache"/tacho_*.orig.tar.xz
XZ_OPT=-6 "${pack[@]}" "$orig.orig.tar.xz" -C "$deb_cache" "$name"
rm -rf "${deb_cache:?}/$name"
for suite in "${@:-bookworm}"; do
	case $suite in bookworm | trixie | forky | experimental) ;; *) die "no recipe for suite \"$suite\"" ;; esac
	build "$suite"
done
