#!/usr/bin/env bash
# usage: tools/record-live.sh [TAPE]
#
# Shows tacho live on a history, key by key, as Markdown. docs/live-recording.md is its
# output without TAPE, on the history of its tests.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo build --quiet --locked --package tacho --package tacho-live --bins
cargo build --quiet --locked --package tacho-live --example shop
program=$(realpath "${CARGO_TARGET_DIR:-target}/debug")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/record-live.XXXXXX")
socket=record-live-$$
terminal() { tmux -L "$socket" -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null || true; rm -rf "$scratch"' EXIT
tape=${1:-}
if [ -z "$tape" ]; then
	tape=$scratch/shop
	"$program/examples/shop" "$scratch"
fi

# the screen, once it shows something else and stands still
shown=
screen() {
	local now before=$shown
	while now=$(terminal capture-pane -p) && { [ "$now" != "$before" ] || [ "$now" = "$shown" ] || [ -z "$now" ]; }; do
		before=$now
		sleep 0.5
	done
	shown=$now
	# shellcheck disable=SC2016 # Markdown
	printf '\n```text\n%s\n```\n' "$now"
}

# press WHAT-IT-SAYS KEY...
press() {
	printf '\n%s\n' "$1"
	shift
	terminal send-keys "$@"
	screen
}

cat <<-'END'
	# An incident in tacho live

	What `tools/record-live.sh` prints: a made-up history of ten minutes on four
	CPUs, in a terminal of 80 x 24, in ASCII. Colours do not show here.
END
export TZ=UTC
terminal -u new-session -d -x 80 -y 24 \
	"exec env TERM=tmux-256color NO_COLOR=1 '$program/tacho-live' --tape shop='$tape' --ascii"
screen
press "\`M\` \`M\` goes to the marker before the storm." M M
press "\`Right\`: the storm begins. Forty sessions wait for a lock." Right
press "\`b\`: process 500 holds it, idle in a transaction." b
press "\`Enter\`: what it did, and when it ended." Enter
press "\`Escape\`: back." Escape
press "\`q\`: the queries of that moment." q
press "\`s\`: the sessions." s
