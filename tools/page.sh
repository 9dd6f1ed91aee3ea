#!/usr/bin/env bash
# usage: tools/page.sh
#
# Builds the page of tacho web into page/dist, where the program takes it from. If that
# is impossible it says why and succeeds: everything else builds without it.
set -euo pipefail

cd "$(dirname "$0")/../page"
without() {
	printf 'page: %s; tacho web will have no page\n' "$1" >&2
	exit 0
}

node=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/' || true)
[ "${node:-0}" -ge 18 ] || without "there is no Node 18 or later (Debian: nodejs, npm)"
command -v npm >/dev/null || without "there is no npm"
[ -w . ] || without "its directory is read only"
if [ -e dist/index.html ] &&
	[ -z "$(find src public index.html vite.config.ts svelte.config.js package-lock.json ../catalog/waits.txt -newer dist/index.html -print -quit)" ]; then
	exit 0
fi
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
	# "npm ci" would insist on packages of all platforms, which not every registry has
	echo 'page: fetching its packages' >&2
	npm install --no-save --omit=dev --loglevel=error >&2 || without "its packages could not be fetched"
fi
echo 'page: building it' >&2
npm run --silent build -- --logLevel warn >&2
