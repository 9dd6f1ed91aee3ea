#!/usr/bin/env bash
# usage: tools/test-page.sh [ARGUMENT]...
#
# Checks the types and the logic of the page, then tests the page in a browser
# (Debian's chromium, or CHROMIUM) on a real tacho web. Arguments are Playwright's:
# "tools/test-page.sh live states" runs live.e2e.ts and states.e2e.ts, and
# "-g TITLE" the tests with that title. Needs the programs of "make program", or
# those in the directory TACHO_PROGRAMS, and installs everything else.
# SOURCES=dsn: the tests run on a server of their own, read through connections, with
# the extension and with the SQL edition (tools/page-server.sh). PG_CONFIG names its
# installation, or MAJOR, such as 18, its major (tools/in-pg.sh).
# SOURCES=incidents: the incidents of the demo are solved on the page. It plays them first,
# for a quarter of an hour, unless a demo that runs has played them (demo/incidents.sh).
# The last line counts: "N passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/../page"
die() { printf 'error: %s\n' "$@" >&2; exit 1; }

../tools/prereq.sh page
export TACHO_PROGRAMS=${TACHO_PROGRAMS:-${CARGO_TARGET_DIR:-$(realpath ..)/target}/release}
[ -x "$TACHO_PROGRAMS/tacho-web" ] || die "there is no $TACHO_PROGRAMS/tacho-web; make program builds it"
# tools/page.sh does the same without the packages that only tests need.
npm install --no-save --loglevel=error
npm run --silent check
npm test --silent
if [ "${SOURCES:-}" = incidents ]; then
	if [ ! -e ../.demo/incidents ]; then
		trap '../demo/run.sh --stop' EXIT
		../demo/run.sh >&2
		../demo/incidents.sh >&2
	fi
	TACHO_DEMO=$(realpath ../.demo)
	export TACHO_DEMO
	set -- --config e2e/incidents.config.ts "$@"
fi
[ "${SOURCES:-}" != dsn ] || set -- --config e2e/sources.config.ts "$@"
node_modules/.bin/playwright test "$@"
