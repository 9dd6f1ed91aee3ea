#!/usr/bin/env bash
# usage: tools/test-packaging.sh
#
# Runs the Makefiles as packagers and installers do (pg_buildext, dh --with pgxs, pgxn):
# "all", "install" into DESTDIR, "installcheck", "clean" without cargo, and a build in
# another directory that leaves the sources unchanged. Works on a copy, with stand-ins for
# cargo and npm. The last line counts: "15.20: N passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/.."
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tacho-packaging.XXXXXX")
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
config=${PG_CONFIG:-pg_config}
passed=0 failed=0
unset CARGO_TARGET_DIR MAKEFLAGS MAKELEVEL MFLAGS

# holds WHAT COMMAND...
holds() {
	local what=$1
	shift
	if "$@" >"$scratch/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
		tail -n 15 "$scratch/log" | sed 's/^/    /'
	fi
}

# the files below a directory
installed() { (cd "$1" && find . ! -type d | sort); }

mkdir "$scratch/source" "$scratch/bin" "$scratch/elsewhere"
git ls-files --cached --others --exclude-standard Makefile Cargo.toml Cargo.lock extension catalog page tools |
	tar -cf - -T - | tar -C "$scratch/source" -xf -
# cargo build: makes a program that notes its arguments; cargo clean: removes it
cat >"$scratch/bin/cargo" <<-'END'
	#!/bin/sh
	case $1 in
	build)
		mkdir -p target/release && cd target/release
		printf '#!/bin/sh\nmkdir -p "$2" && echo "$@" >"$2/$1"\n' >tacho
		for each in -doctor -live -mcp -record -ship -watch -web; do touch "tacho$each"; done
		chmod 755 tacho*
		;;
	clean) rm -rf target ;;
	esac
END
# npm install: packages; npm run build: a page
cat >"$scratch/bin/npm" <<-'END'
	#!/bin/sh
	case $1 in
	install) mkdir -p node_modules && touch node_modules/.package-lock.json ;;
	run) mkdir -p dist && touch dist/index.html ;;
	esac
END
printf '#!/bin/sh\necho v18.0.0\n' >"$scratch/bin/node"
chmod 755 "$scratch/bin"/*
PATH=$scratch/bin:$PATH

make=(make -s PG_CONFIG="$config" with_llvm=no)
in_source=("${make[@]}" -C "$scratch/source")
holds "all" "${in_source[@]}" all
holds "install" "${in_source[@]}" install DESTDIR="$scratch/plain"
holds "the program is installed" test -x "$scratch/plain$("$config" --bindir)/tacho"
holds "the library is installed" test -e "$scratch/plain$("$config" --pkglibdir)/tacho.so"
holds "the parent of programs is installed beside it" test -x "$scratch/plain$("$config" --pkglibdir)/tacho-parent"
holds "it made completions and manual pages" test -e "$scratch/plain/usr/local/share/generate"
# files of the extension and the program, with the same names on each major
wanted() {
	printf '.%s\n' "$("$config" --bindir)/tacho" "$("$config" --pkglibdir)"/{tacho.so,tacho-parent} \
		"$("$config" --sharedir)"/extension/{tacho.control,tacho--0.2.sql,tacho--0.1--0.2.sql} /usr/local/share/generate | sort
}
holds "these files are installed, and no others" diff <(installed "$scratch/plain") <(wanted)
holds "install-programs" "${in_source[@]}" install-programs PREFIX=/opt DESTDIR="$scratch/programs"
holds "... of people" diff <(cd "$scratch/programs" && find . -type f | sort) \
	<(printf './opt/bin/tacho%s\n' '' -doctor -live -mcp -record -ship -watch -web; echo ./opt/share/generate)
holds "... with completions of programs beside" grep -q 'tacho-doctor .*tacho-live .*tacho-mcp .*tacho-record .*tacho-ship .*tacho-watch .*tacho-web$' \
	"$scratch/programs/opt/share/generate"
# a warning is an error for developers, but not for packagers
echo 'static int unused_here;' >>"$scratch/source/extension/src/readers/child.c"
# shellcheck disable=SC2016 # expanded inside
holds "a warning ends a plain build" bash -c '
	! "$@" build >"$0" 2>&1 && grep -q "error: .unused_here.* defined but not used" "$0"' \
	"$scratch/check" "${in_source[@]}"
holds "... and no build of packagers" "${in_source[@]}" all USE_PGXS=1
sed -i '$d' "$scratch/source/extension/src/readers/child.c"
holds "there is a page" test -e "$scratch/source/page/dist/index.html"
holds "clean" "${in_source[@]}" clean
holds "clean leaves nothing" test -z "$(find "$scratch/source" -name '*.o' -o -name '*.so' -o -name tacho-parent -o -name target -o -name node_modules -o -name dist)"

# as pg_buildext calls it; the sources may not be writable
elsewhere=("${make[@]}" -C "$scratch/elsewhere" -f "$scratch/source/Makefile" VPATH="$scratch/source" USE_PGXS=1)
find "$scratch/source" | sort >"$scratch/before"
chmod -R a-w "$scratch/source/extension" "$scratch/source/catalog"
holds "a build in another directory" "${elsewhere[@]}"
holds "install from there" "${elsewhere[@]}" install DESTDIR="$scratch/other"
holds "installs the same files" diff <(installed "$scratch/plain") <(installed "$scratch/other")
holds "the same script" cmp "$scratch"/{plain,other}"$("$config" --sharedir)/extension/tacho--0.2.sql"
holds "the same script of the update" cmp "$scratch"/{plain,other}"$("$config" --sharedir)/extension/tacho--0.1--0.2.sql"
# shellcheck disable=SC2016 # expanded inside
holds "installcheck runs the tests of the sources" bash -c '
	! PGHOST=/nonexistent "$@" installcheck >"$0" 2>&1 && grep -q nonexistent "$0"' \
	"$scratch/check" "${elsewhere[@]}"

# without cargo
mkdir -p "$scratch/source/target/release"
mkdir "$scratch/few"
IFS=: read -ra directories <<<"$PATH"
for each in "${directories[@]}"; do ln -s "$each"/* "$scratch/few/" 2>/dev/null || true; done
rm -f "$scratch/few/cargo"
holds "clean without cargo" env PATH="$scratch/few" HOME=/nonexistent "${elsewhere[@]}" clean
holds "... removes objects" test -z "$(find "$scratch/elsewhere" -name '*.o' -o -name '*.so' -o -name tacho-parent)"
holds "... and what cargo made" test ! -e "$scratch/source/target"
holds "the sources are as they were" diff "$scratch/before" <(find "$scratch/source" | sort)
version=$("$config" --version)
version=${version#PostgreSQL }
echo "${version%% *}: $passed passed, $failed failed"
[ "$failed" = 0 ]
