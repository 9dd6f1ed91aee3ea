#!/usr/bin/env bash
# usage: tools/stage.sh DIR
#
# Builds tacho for PG_CONFIG into a private PostgreSQL and prints the path of its
# pg_config. DIR/src is a copy of the sources, which the build and the tests write to.
# DIR/pg is the installation (tools/pg-tree.sh) with the extension and the program.
# The script writes nothing outside DIR, and never uses objects that were compiled for
# another major.
#
# Environment
#   PG_CONFIG      installation to start from (default: pg_config in PATH)
#   TACHO_PROGRAM  tacho program to install (default: target/release/tacho), and those
#                  beside it that make install-programs installs; without it the
#                  extension alone
#   TACHO_STRICT   not empty: warnings in our own files are errors
#   TACHO_BUILDS   directory that keeps compiled files for a day: the same sources for
#                  the same server are compiled once (default: none)
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
repo=$(cd "$(dirname "$0")/.." && pwd -P)
umask 022
mkdir -p "$1/src"
dir=$(cd "$1" && pwd -P)
program=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$repo/target}/release/tacho}

parts=(extension catalog tools)
for each in conformance dashboards sql docs README.md; do
	[ ! -e "$repo/$each" ] || parts+=("$each")
done
tar -C "$repo" -cf - --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude=tacho-parent --exclude='*.png' "${parts[@]}" |
	tar -C "$dir/src" -xf - --no-same-owner --no-same-permissions
config=$("$repo/tools/pg-tree.sh" "${PG_CONFIG:-pg_config}" "$dir/pg")
arguments=()
if [ -n "${TACHO_STRICT:-}" ]; then
	# headers of PostgreSQL become system headers: their warnings are not ours
	arguments=(WERROR=-Werror COPT="-isystem $("$config" --includedir-server)")
fi
extension() { make -s -C "$dir/src/extension" "$1" PG_CONFIG="$config" with_llvm=no "${arguments[@]}" >&2; }

# kept: the directory as it was after the same build, or after this one
kept() {
	local key
	key=$(cd "$dir/src" && {
		find extension catalog -type f ! -path 'extension/test/*' -exec sha256sum {} + | sort
		"$config" --version --configure --cflags --cppflags
		echo "${TACHO_STRICT:-}"
	} | sha256sum | cut -c 1-32)
	mkdir -p "$TACHO_BUILDS"
	exec 8>"$TACHO_BUILDS/$key.lock"
	flock 8
	if [ -e "$TACHO_BUILDS/$key.tar" ]; then
		tar -C "$dir/src" -xf "$TACHO_BUILDS/$key.tar"
	else
		find "$TACHO_BUILDS" -type f -mmin +1440 -delete
		extension all
		tar -C "$dir/src" -cf "$TACHO_BUILDS/$key.new" --exclude=extension/test extension catalog
		mv "$TACHO_BUILDS/$key.new" "$TACHO_BUILDS/$key.tar"
	fi
	exec 8>&-
}

[ -z "${TACHO_BUILDS:-}" ] || kept
extension install
[ ! -e "$program" ] || install -m 755 "$program" "${config%/*}/tacho"
# the Makefile has their names
read -ra beside < <(sed -n 's/^BESIDE = //p' "$repo/Makefile")
for name in "${beside[@]}"; do
	each=${program%/*}/tacho-$name
	[ ! -e "$each" ] || install -m 755 "$each" "${config%/*}/"
done
echo "$config"
