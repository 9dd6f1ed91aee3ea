#!/usr/bin/env bash
# usage: demo/build.sh DIR
#
# Builds the parts of tacho that the demo shows: the programs tacho, tacho-web and
# tacho-live, the page, and the extension inside a private PostgreSQL in DIR. It
# installs what is missing and prints the path of that PostgreSQL's pg_config.
# The page and the extension are built while cargo compiles; one line on standard
# error shows the progress.
#
# The cargo profile is "demo", which compiles quickly and without LTO; TACHO_PROFILE
# names another. Environment: PG_CONFIG, CARGO_TARGET_DIR and CARGO_FLAGS, as for make.
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd -P)
cd "$(dirname "$0")/.."
# shellcheck source=demo/say.sh
source demo/say.sh
profile=${TACHO_PROFILE:-demo}
programs=${CARGO_TARGET_DIR:-$PWD/target}/$profile
export PATH=$PATH:$HOME/.cargo/bin
logs=$(mktemp -d)

# Each part is a process group of its own (set -m), so that it ends with its children.
stop_parts() {
	local group
	for group in $(jobs -p); do kill -TERM -- "-$group" 2>/dev/null || true; done
	rm -rf "$logs"
}
trap stop_parts EXIT
trap 'exit 130' INT TERM

# compile PROGRAM...
compile() {
	# shellcheck disable=SC2086 # flags are words
	cargo build --profile "$profile" --locked ${CARGO_FLAGS:-} "${@/#/--package=}"
}

# Without a program there is nothing to install beside the extension yet.
extension() { TACHO_PROGRAM=/nonexistent tools/stage.sh "$dir"; }

# part NAME COMMAND...: runs COMMAND in the background, its output goes to the log
part() {
	set -m
	{ if "${@:2}" >>"$logs/$1" 2>&1; then touch "$logs/$1.done"; else touch "$logs/$1.failed"; fi; } &
	set +m
}

# The crates of this workspace take about ten times as long as others.
weigh() { awk '/\(\// { sum += 9 } { sum += 1 } END { print sum + 0 }'; }

# how much of the programs is compiled, in percent
compiled() {
	local weight
	weight=$(grep -aE '^ *Compiling ' "$logs/programs" | weigh)
	echo $((weight >= total ? 99 : 100 * weight / total))
}

state() { if [ -e "$logs/$1.done" ]; then echo "is built"; else echo "building"; fi; }

# left PERCENT: an estimate from the time that this much took
left() {
	local seconds=$((SECONDS - started))
	[ "$1" -ge 5 ] || return 0
	printf ', about %d s left' $((seconds * (100 - $1) / $1))
}

show() { # on a terminal, where the line replaces the one before
	[ -t 2 ] || return 0
	local percent
	percent=$(compiled)
	printf '\r  programs %2d %%, page %s, extension %s%s\e[K' \
		"$percent" "$(state page)" "$(state extension)" "$(left "$percent")" >&2
}

# ready NAME: waits for a part; prints its log where it failed
ready() {
	until [ -e "$logs/$1.done" ]; do
		if [ -e "$logs/$1.failed" ]; then
			printf '\n' >&2
			tail -n 40 "$logs/$1" >&2
			die "could not build the $1"
		fi
		sleep 0.2
		show
	done
}

started=$SECONDS
tools/prereq.sh demo >&2
total=$(cargo tree --package tacho --package tacho-web --package tacho-live --edges normal,build \
	--prefix none --locked | sed 's/ (\*)$//' | sort -u | weigh)
: >"$logs/programs"
part programs compile tacho tacho-live
part page tools/page.sh
part extension extension
ready programs
ready page # tacho-web has the page in it
rm "$logs/programs.done"
part programs compile tacho-web
ready programs
ready extension
[ ! -t 2 ] || printf '\r\e[K' >&2
TACHO_PROGRAM=$programs/tacho tools/stage.sh "$dir" 2>"$logs/stage" || { cat "$logs/stage" >&2; die "could not install tacho"; }
