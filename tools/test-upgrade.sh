#!/usr/bin/env bash
# usage: tools/test-upgrade.sh [OLD [NEW]]
#
# Tests pg_upgrade from major OLD (default 15) to NEW (default 18) with tacho in
# both (extension/test/t/195_upgrade.pl). OLD has to be installed on this system;
# NEW is wherever tools/pg-major.sh has put it. In a root of its own NEW sees the
# programs of OLD with the libraries they need and that root does not have.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
old=${1:-15} new=${2:-18}
config=/usr/lib/postgresql/$old/bin/pg_config
[ -x "$config" ] || { echo "error: PostgreSQL $old is not installed on this system" >&2; exit 1; }
export TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$(dirname "$here")/target}/release/tacho}

# An installation without links: their targets do not exist in the other root.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tacho-upgrade.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
PG_CONFIG=$config TACHO_STRICT=1 "$here/stage.sh" "$scratch/staged" >"$scratch/pg_config"
cp -rL "$scratch/staged/pg" "$scratch/pg"
mkdir "$scratch/libraries"
root=$("$here/pg-major.sh" "$new")
root=${root%%$'\n'*}
for program in "$scratch"/pg/lib/postgresql/"$old"/bin/{postgres,pg_ctl,pg_dump,pg_resetwal} \
	"$scratch"/pg/lib/postgresql/"$old"/lib/dict_snowball.so; do
	ldd "$program" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | while read -r library; do
	[ -n "$(find "${root%/}"/lib/ "${root%/}"/usr/lib/ -name "${library##*/}" -print -quit 2>/dev/null)" ] ||
		cp -L "$library" "$scratch/libraries/"
done
# the SQL objects of version 0.1
cp "$here"/../extension/test/data/tacho--0.1.* "$scratch/pg/share/postgresql/$old/extension/"
rm -rf "$scratch/staged"
chmod -R go+rX "$scratch"
bin=$scratch/pg/lib/postgresql/$old/bin

# wrappers would change what pg_upgrade calls: the libraries are named for all
"$here/in-pg.sh" -b "$scratch" -b "$TACHO_PROGRAM" "$new" env \
	LD_LIBRARY_PATH="$scratch/libraries" TACHO_OLD_BINDIR="$bin" TACHO_PROGRAM="$TACHO_PROGRAM" \
	"$here/test-pg.sh" 195_upgrade
