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

# clippy does the same for Rust
while read -r file line lines; do
  breach "$file:$line: a function of $lines lines, at most 100"
done < <(files '*.c' '*.h' | xargs awk '/^{/ { begin = FNR } /^}/ && begin { if (FNR - begin > 99) print FILENAME, begin, FNR - begin + 1; begin = 0 }')

while read -r file; do
  breach "$file: tests PG_VERSION_NUM outside compat.h"
done < <(files 'extension/*.c' 'extension/*.h' | grep -v '/compat\.h$' | xargs grep -l PG_VERSION_NUM || true)

while read -r file; do
  breach "$file: opens files in the server: the program tacho does that; core/host.c reads /proc"
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

# a question goes down these folders; explain.rs, inspect.rs and sizes.rs stand above them
direction tape/src/query crate::query:: value ask rows sums pass functions 'explain|inspect|sizes'
while read -r file; do
  breach "$file: takes an item of query/ by a path without its folder"
done < <(files 'tape/src/query/*/*.rs' | grep -v _tests | xargs grep -lE 'crate::query::[{A-Z]' || true)

# circles DIR PATH: the modules of a folder, whose path in Rust is PATH, use each other
# in no circle; tests may.
circles() {
  local dir=$1 path=$2 file module names mark loop
  names=$(files "$dir/" | sed "s,^$dir/,,; s,/.*,,; s,\.rs\$,," | sort -u)
  loop=$(while read -r file; do
    module=${file#"$dir/"}
    [[ $module == */* ]] && mark=$path || mark="(super|$path)"
    module=${module%%/*}
    sed '/^\(pub.* \)\?mod tests\? {/,$d;s,//.*,,' "$file" | tr '\n' ' ' |
      { grep -oE "\b$mark::(\{[^;]*|[a-z_]+)" || true; } | sed 's/^.*:://' | grep -oE '[a-z_]+' |
      grep -xF "$names" | sed "s/^/${module%.rs} /"
  done < <(files "$dir/" | grep -v '_tests\(/\|\.rs$\)\|/mod\.rs$') | tsort 2>&1 >/dev/null |
    sed -n '/input contains a loop/d;s/^tsort: //p' | paste -sd' ') || true
  [ -z "$loop" ] || breach "$dir: modules use each other in a circle: $loop"
}
for folder in value ask rows sums pass functions; do
  circles "tape/src/query/$folder" "crate::query::$folder"
done
for folder in files format store write; do
  circles "tape/src/$folder" "crate::$folder"
done
circles cli/src/readers crate::readers
for folder in doctor live ship web; do
  circles "$folder/src" crate
done

# The same for a folder of C: a file uses the headers that it includes.
circles_of_headers() {
  local folder=$1 file stem loop
  loop=$(while read -r file; do
    stem=$(basename "${file%.*}")
    { grep -oE "#include \"$folder/[a-z_]+\.h\"" "$file" || true; } |
      sed 's,.*/,,; s,\.h",,' | grep -vx "$stem" | sed "s/^/$stem /" || true
  done < <(files "extension/src/$folder/*.c" "extension/src/$folder/*.h") | tsort 2>&1 >/dev/null |
    sed -n '/input contains a loop/d;s/^tsort: //p' | paste -sd' ') || true
  [ -z "$loop" ] || breach "extension/src/$folder: files include each other in a circle: $loop"
}
for folder in changes plans history readers statements; do
  circles_of_headers "$folder"
done

# The tests that tape/tests/README.md names exist; "…" stands for the rest of a name.
# shellcheck disable=SC2016 # backquotes of Markdown
while read -r name; do
  breach "tape/tests/README.md: no test is called $name"
done < <({ files '*.rs' | xargs grep -hoE '\bfn [a-z0-9_]+' | sed 's/^fn //'; files '*/tests/*.rs' | sed 's,.*/,,; s,\.rs$,,'; } |
  awk 'NR == FNR { tests = tests $0 "\n"; next }
    { begin = "\n" $0; if (!sub(/…$/, "", begin)) begin = begin "\n" }
    !index("\n" tests, begin)' - <(sed 's/`[^`]*`//g' tape/tests/README.md | grep -oE '\b[a-z0-9]+(_[a-z0-9]+){2,}(_…)?' | sort -u))

version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" extension/tacho.control 2>/dev/null || true)
workspace=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml | head -1)
if [ -n "$version" ] && [ "${workspace%.*}" != "$version" ]; then
  breach "Cargo.toml: version $workspace does not match $version of extension/tacho.control"
fi
fleet=$(sed -n 's/^version *= *"\(.*\)"/\1/p' fleet/pyproject.toml)
[ "$fleet" = "$workspace" ] || breach "fleet/pyproject.toml: version $fleet does not match $workspace of Cargo.toml"
# between releases packages sort before the release (tools/package-deb.sh)
case $(sed -n '1s/^tacho //p' debian/changelog) in
"($workspace~dev-1) UNRELEASED;"*) ;;
"($workspace-"*') unstable;'*) ;;
*) breach "debian/changelog: neither $workspace~dev-1 in UNRELEASED, nor a revision of $workspace in unstable" ;;
esac

[ "$breaches" = 0 ] || exit 1
