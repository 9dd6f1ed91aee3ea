#!/usr/bin/env bash
# usage: tools/pg-source.sh MAJOR
#
# Prints a source tree of PostgreSQL MAJOR: 15, 17 or 18, from the source
# package of Debian's release that tools/pg-major.sh takes the server from. It
# is downloaded once, checked by apt, and kept in $TACHO_PG_CACHE (default
# /var/cache/tacho/pg) as source-MAJOR. The mirror (tools/debian-mirror.sh) must
# answer for that release.
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
major=$1
case $major in 15) suite=bookworm ;; 17) suite=trixie ;; 18) suite=forky ;;
*) die "no recipe for the source of PostgreSQL \"$major\"" ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
source=${TACHO_PG_CACHE:-/var/cache/tacho/pg}/source-$major
[ ! -x "$source/configure" ] || { echo "$source"; exit; }

mkdir -p "$(dirname "$source")"
exec 9>"$source.lock"
flock 9
[ ! -x "$source/configure" ] || { echo "$source"; exit; }
mirror=$("$here/debian-mirror.sh") || true
[ -n "$mirror" ] || die "apt names no Debian mirror here; set TACHO_DEBIAN_MIRROR"
work=$(mktemp -d "$source.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,cache/archives}/partial "$work/source"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
# lists of its own; signatures are checked, dates are not: a mirror may be a
# frozen snapshot
apt=(apt-get -qq -o Acquire::Retries=3 -o "Dir::Etc::sourcelist=$work/sources.list"
	-o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
	-o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Acquire::Languages=none)
(cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only "postgresql-$major") >&2 ||
	die "could not download the source of PostgreSQL $major"
tar -xf "$work/postgresql-${major}"_*.orig.tar.* -C "$work/source" --strip-components=1
chmod -R a+rX "$work/source"
mv "$work/source" "$source"
echo "$source"
