#!/usr/bin/env bash
# usage: tools/pg-tree.sh PG_CONFIG DIR
#
# Makes DIR a private, relocated copy of the PostgreSQL installation that
# PG_CONFIG names, and prints the path of the copy's own pg_config. Building,
# testing and trying tacho then never writes to a system path:
#
#   PGC=$(tools/pg-tree.sh pg_config /tmp/pg)
#   make -C extension install PG_CONFIG="$PGC"
#   "$(dirname "$PGC")"/initdb -D /tmp/data
#
# PostgreSQL finds its share and library directories relative to its own
# binary, after following symbolic links. So binaries are copied; everything
# else is linked entry by entry into real directories that can take more
# files. Running it again refreshes the copy and keeps what was installed.
set -euo pipefail

die() { echo "error: $*" >&2; exit 1; }

[ $# -eq 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

config=$(command -v "$1") || die "could not find pg_config \"$1\""
umask 022
mkdir -p "$2"
dir=$(cd "$2" && pwd -P)

# pg_config answers for its own place, so ask the one beside the server
bindir=$(realpath "$("$config" --bindir)")
config=$bindir/pg_config
[ -x "$config" ] || die "could not find pg_config in \"$bindir\""
[ -x "$bindir/postgres" ] || die "no PostgreSQL server in \"$bindir\""

# name -> directory, as the installation reports them
declare -A path
while IFS= read -r line; do
	path[${line%% = *}]=${line#* = }
done < <("$config")
sharedir=${path[SHAREDIR]} pkglibdir=${path[PKGLIBDIR]} libdir=${path[LIBDIR]}
includedir=${path[INCLUDEDIR]} serverdir=${path[INCLUDEDIR-SERVER]}

# the deepest directory that holds them all becomes DIR
root=$bindir
for each in "$sharedir" "$pkglibdir" "$libdir" "$includedir" "$serverdir"; do
	while [[ "$each/" != "${root%/}/"* ]]; do
		root=$(dirname "$root")
	done
done
[ "$dir" != "$root" ] || die "\"$dir\" is the installation itself"
inside() { echo "$dir/${1#"${root%/}/"}"; }

# Links the entries of directory $1 into directory $2. A real directory of $2 is filled
# the same way; a real file of $2 stays. Files of a tacho in the original installation
# are left out.
merge() {
	local entry target plain=()
	for entry in "$1"/*; do
		target=$2/${entry##*/}
		case ${entry##*/} in tacho | tacho[.-]*) continue ;; esac
		if [ -d "$target" ] && [ ! -L "$target" ]; then
			merge "$entry" "$target"
		elif [ -L "$target" ] || [ ! -e "$target" ]; then
			plain+=("$entry")
		fi
	done
	[ ${#plain[@]} -eq 0 ] || ln -sfn -t "$2" -- "${plain[@]}"
}

shopt -s nullglob
mkdir -p "$(inside "$bindir")" "$(inside "$sharedir")/extension" \
	"$(inside "$pkglibdir")/bitcode" "$(inside "$serverdir")"

for each in "$bindir"/*; do
	[ "${each##*/}" = tacho ] || echo "$each"
done | xargs -d '\n' cp -au --no-preserve=ownership -t "$(inside "$bindir")"

for each in "$sharedir" "$pkglibdir" "$serverdir" "$includedir" "$libdir"; do
	target=$(inside "$each")
	if [ -d "$target" ] && [ ! -L "$target" ]; then
		merge "$each" "$target"
	else
		mkdir -p "$(dirname "$target")"
		ln -sfn "$each" "$target"
	fi
done

# links whose goal has gone (the original was upgraded)
find "$dir" -xtype l -delete

config=$(inside "$bindir")/pg_config
[ "$("$config" --bindir)" = "$(inside "$bindir")" ] ||
	die "\"$dir\" does not work as an installation"
echo "$config"
