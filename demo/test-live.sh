#!/usr/bin/env bash
# usage: demo/test-live.sh
#
# Solves the demo's incident in a terminal, as a person does: tmux types the keys
# into tacho live on the tape of "make demo", which is up. The test must see the
# storm, the head of its queue, the moment that it travels back to, and the
# command that answers the same. The last line is "N passed, 0 failed".
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
[ -e "$repo/.demo/storm" ] || { echo "error: there is no demo; make demo starts one" >&2; exit 1; }
demo=$(realpath "$repo/.demo")
live=$(<"$demo/bin")/tacho-live
tape=$demo/data/tacho
read -r storm_start storm_end <"$demo/storm"
log=$(mktemp)
unset TMUX NO_COLOR
terminal() { LC_ALL=C.UTF-8 tmux -L "tacho-demo-$$" -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null || true; rm -f "$log"' EXIT

passed=0
ok() { passed=$((passed + 1)); echo "ok - $1"; }
no() { printf 'not ok - %s\n%s\n%s passed, 1 failed\n' "$1" "$2" "$passed"; exit 1; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else no "$1" "got $2, expected $3"; fi; }
screen() { terminal capture-pane -p -J | sed 's/ *$//'; }

# shows PATTERN NAME: waits for a line of the screen; prints it
shows() {
	local try line
	for ((try = 0; try < 600; try++)); do
		if line=$(screen | grep -m 1 -E "$1"); then
			ok "$2" >&2
			echo "$line"
			return
		fi
		sleep 0.1
	done
	no "$2" "$(screen)" >&2
}

# ask WORD...: asks the history with the program on the command line
ask() { "$demo/tacho" "$@" --tape "$tape" --json; }
# value NAME: the value of column NAME in the first row
value() { sed -nE "s/.*\"$1\": *\"?([^\",}]*)\"?[,}]?.*/\1/p" | head -n 1; }
clock() { date -u -d "@$1" "+%H:%M:%S"; }
stamp() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }

terminal -u new-session -d -x 120 -y 40 "'$live' --tape '$tape' --tz UTC; echo ended \$?; cat"

# The storm: more wait for locks than there are CPUs.
shows ' Lock$' "the storm is seen" >"$log"
same "waits for locks are first" "$(screen | sed -n '/ wait class$/{n;s/.* //p}')" Lock

# One key shows the head of the queue and its statement.
holder=$(ask top pid --application 'stock import' --scope all \
	--since "$(stamp "$storm_start")" --until "$(stamp "$storm_end")" | value key)
terminal send-keys b
line=$(shows '^[0-9]+ +24 .* stock import ' "the head of the queue is found with one key")
same "it is the import's session" "${line%% *}" "$holder"
[[ "$line" = *"idle in transaction"*"update item set qty = "* ]] || no "its state and text" "$line"
ok "it is idle in its transaction, and its text is there"

# Back to before the storm, and into it again.
terminal send-keys Escape
shows '^ wait classes ' "out of the locks" >"$log"
terminal send-keys g
terminal send-keys -l "$(clock $((storm_start - 12)))"
terminal send-keys Enter
line=$(shows "^ wait classes $(clock $(((storm_start - 12) / 10 * 10)))" "a moment before the storm")
screen >"$log"
if awk '/ Lock$/ && $1 >= 1 { found = 1 } END { exit !found }' "$log"; then
	no "there was no storm then" "$(<"$log")"
fi
ok "there was no storm then"
terminal send-keys Right Right
since=$(((storm_start - 12) / 10 * 10 + 20))
shows "^ wait classes $(clock $since)–$(clock $((since + 10)))" "two columns on" >"$log"
lock=$(shows '^ +[0-9.]+ +[0-9.]+ .* Lock$' "its waits for locks" | awk '{ print $1 }')

# The command that is printed answers the same.
terminal send-keys w
shows '^tacho top ' "the question as a command" >"$log"
terminal send-keys Q
shows '^ended 0$' "the program ends" >"$log"
command=$(screen | grep -m 1 '^tacho ')
figure=$(cd "$repo" && eval "'$demo/tacho' ${command#tacho } --json" | grep -m 1 '"Lock"' | value avg_aas)
same "it answers what was shown" "$(printf '%.2f' "$figure")" "$lock"
echo "$passed passed, 0 failed"
