#!/usr/bin/env bash
# usage: tools/build-times.sh [CARGO ARGUMENT]...
#        tools/build-times.sh -t FILE
#
# Compiles the programs of the demo (or the given packages, with the given profile) three
# times: in an empty directory, with nothing to do, and after a change of the crate tacho.
# Prints the wall time and the CPU time of each. Prints a table of the packages that took the
# CPU time of the first. -t prints the table of a file that tools/rustc-time.sh has written.
set -euo pipefail

table() { # FILE
	awk '{ each[$1] += $2 + $3; all += $2 + $3 }
		END { for (name in each) printf "%.1f %s %.1f\n", each[name], name, 100 * each[name] / all
			printf "%.1f all 100.0\n", all }' "$1" | sort -rn | awk '
		BEGIN { print "| Package | CPU | Share |"; print "|---|--:|--:|" }
		$3 >= 1 { printf "| %s | %s s | %s %% |\n", $2, $1, $3; next }
		{ rest += $1; part += $3; n++ }
		END { printf "| %d others | %.1f s | %.1f %% |\n", n, rest, part }'
}

cd "$(dirname "$0")/.."
case ${1:-} in
-t) [ $# = 2 ] || exit 2; table "$2"; exit ;;
-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- --profile demo --package tacho --package tacho-live --package tacho-web
scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/tacho-build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export CARGO_TARGET_DIR=$scratch/target RUSTC_WRAPPER=$PWD/tools/rustc-time.sh TACHO_RUSTC_TIMES=$scratch/times
export CARGO_INCREMENTAL=0
unset "${!CARGO_PROFILE_@}"
TIMEFORMAT='%R s, %U + %S s of CPU'
run() { # WHAT: cargo, with all that it starts
	printf '%s: ' "$1" >&2
	time cargo build --locked --quiet "${@:2}"
}

tools/page.sh
printf 'load average %s, %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)" "$(rustc --version)"
run 'all' "$@"
mv "$scratch/times" "$scratch/cold"
run 'nothing to do' "$@"
touch cli/src/main.rs
run 'the crate of tacho' "$@"
table "$scratch/cold"
