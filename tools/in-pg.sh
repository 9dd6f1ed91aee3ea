#!/usr/bin/env bash
# usage: tools/in-pg.sh [-b PATH]... [-w DIR] MAJOR COMMAND...
#
# Runs COMMAND where PostgreSQL MAJOR is (tools/pg-major.sh provides it), with
# PG_CONFIG set and that major's programs first in PATH. In a Debian root the
# command sees this repository and the paths of -b at the same paths,
# read-only. It can write to the directory of -w. Mounts and processes live in
# their own namespaces: both are gone when the command ends, however it ends.
#
# The command runs as the caller. tools/test-pg.sh steps down by itself.
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }

binds=() writable=
while getopts b:w: option; do
	case $option in
	b) binds+=("$(realpath -e "$OPTARG")") ;;
	w) writable=$(realpath -e "$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd -P)
repo=$(dirname "$here")
major=$1
shift

found=$("$here/pg-major.sh" "$major")
root=${found%%$'\n'*}
export PG_CONFIG=${found#*$'\n'}
PATH=$(dirname "$PG_CONFIG"):$PATH
if [ "$root" = / ]; then
	exec "$@"
fi

[ "$(id -u)" = 0 ] || die "PostgreSQL $major lives in $root, which needs root to use"
export PATH=${PG_CONFIG%/*}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C.UTF-8 HOME=/root
unset PERL5LIB LD_LIBRARY_PATH TMPDIR

# shellcheck disable=SC2016 # expanded inside
exec unshare --mount --propagation private --pid --fork --kill-child \
	bash -euc '
	root=$1 writable=$2 cwd=$PWD
	shift 2
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	while [ "$1" != -- ]; do
		if [ -d "$1" ]; then mkdir -p "$root$1"; else
			mkdir -p "$root${1%/*}"
			[ -e "$root$1" ] || : >"$root$1"
		fi
		mount --bind "$1" "$root$1"
		[ "$1" = "$writable" ] || mount -o remount,bind,ro "$root$1"
		shift
	done
	shift
	# COMMAND in the same directory, or in / if the root does not have it
	exec chroot "$root" /bin/sh -c "cd \"\$0\" 2>/dev/null || cd /; exec \"\$@\"" "$cwd" "$@"' \
	- "$root" "$writable" "$repo" "${binds[@]}" ${writable:+"$writable"} -- "$@"
