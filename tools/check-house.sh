#!/usr/bin/env bash
# House rules that no compiler checks.
#
# usage: tools/check-house.sh
#
# Prints each breach as FILE: rule; exit 1 when there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

breaches=0
breach() {
  printf '%s\n' "$1" >&2
  breaches=$((breaches + 1))
}
files() { git ls-files --cached --others --exclude-standard -- "$@"; }

while read -r lines file; do
  [ "$file" = total ] || [ "$lines" -le 800 ] || breach "$file: $lines lines, at most 800"
done < <(files '*.c' '*.h' '*.rs' '*.sql' '*.pl' '*.pm' '*.ts' '*.svelte' '*.css' | xargs wc -l)

while read -r lines file; do
  [ "$file" = total ] || [ "$lines" -le 150 ] || breach "$file: $lines lines of shell, at most 150"
done < <(files '*.sh' | xargs wc -l)

while read -r file; do
  breach "$file: tests PG_VERSION_NUM outside compat.h"
done < <(files 'extension/*.c' 'extension/*.h' | grep -v '/compat\.h$' | xargs grep -l PG_VERSION_NUM || true)

while read -r file; do
  breach "$file: opens files in the server"
done < <(files 'extension/src/*.c' | grep -vE '/(statements_save|changed_settings)\.c$' | xargs grep -lE '\b(fopen|AllocateFile|OpenTransientFile|PathNameOpenFile)\(' || true)

while read -r file; do
  breach "$file: unsafe code in the tape"
done < <(files 'tape/src/*.rs' | xargs grep -lE '\bunsafe (\{|fn|impl)' || true)

while read -r file; do
  breach "$file: no #[test] asserts durations"
done < <(files '*.rs' | xargs grep -lE 'assert.*elapsed\(\)' || true)

# direction DIR MARK FOLDER...: a file names, behind MARK, no folder that stands
# later in the list than its own; tests may name all.
direction() {
  local dir=$1 mark=$2 folder later file
  shift 2
  while [ $# -gt 1 ]; do
    folder=$1
    shift
    later=$(IFS='|' && echo "$*")
    while read -r file; do
      ! sed '/^\(pub.* \)\?mod tests\? {/,$d' "$file" | grep -qE "$mark($later)(::|/)" ||
        breach "$file: $folder may not use $later"
    done < <(files "$dir/$folder/" | grep -v '_tests\(/\|\.rs$\)')
  done
}
direction tape/src crate:: files format store query write
# readers use neither of history and sampler, and these do not use readers
direction extension/src '#include "' core changes plans statements readers history sampler
direction extension/src '#include "' core changes plans statements history sampler readers

# order DIR FOLDER PATH MODULE...: of the modules of a folder, whose path in Rust is
# PATH, none names one that stands later in the list; each file is in it.
order() {
  local dir=$1 folder=$2 path=$3 module file later
  shift 3
  while read -r file; do
    module=${file#"$dir/$folder/"}
    module=${module%%/*}
    [[ " mod $* " == *" ${module%.rs} "* ]] || breach "$file: not in the order of $folder/"
  done < <(files "$dir/$folder/" | grep -v '_tests\(/\|\.rs$\)')
  while [ $# -gt 1 ]; do
    module=$1
    shift
    later=$(IFS='|' && echo "$*")
    while read -r file; do
      [ "$file" = "$dir/$folder/$module.rs" ] && mark="(super|$path)" || mark=$path
      ! sed '/^\(pub.* \)\?mod tests\? {/,$d;s,//.*,,' "$file" | tr '\n' ' ' |
        grep -qE "\b$mark::(\{[^;]*\b)?($later)\b" || breach "$file: $module may not use $later"
    done < <(files "$dir/$folder/$module.rs" "$dir/$folder/$module/" | grep -v '_tests\(/\|\.rs$\)')
  done
}
# what a question is, what is known of a part, the steps from read.rs down, the
# functions that use them, and who calls these
order tape/src query crate::query error filter vocabulary bucket number civil plain register \
  damage value context row request json ticks runs keys root_blocker dimension text blockers parse \
  closed_buckets cells choice scan select group measure statement_sums statements_running way totals totals_write \
  plan first_pass explained read empty hidden run functions explain inspect sizes

version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" extension/tacho.control 2>/dev/null || true)
workspace=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml | head -1)
if [ -n "$version" ] && [ "${workspace%.*}" != "$version" ]; then
  breach "Cargo.toml: version $workspace does not match $version of extension/tacho.control"
fi

[ "$breaches" = 0 ] || exit 1
