#!/usr/bin/env bash
# usage: tools/test-page.sh [ARGUMENT]...
#
# Types and logic of the page, types of its tests, then the page itself in a
# browser (Debian's chromium, of CHROMIUM) on a real tacho web. Arguments are
# Playwright's, such as the name of a file in page/e2e. Needs the programs of
# "make program" and installs the rest; TACHO_PROGRAMS is where else the programs
# are.
# SOURCES=dsn: on a server of its own instead, asked through connections, with the
# extension and with the SQL edition (tools/page-server.sh; PG_CONFIG names which,
# or MAJOR, such as 18, as of tools/in-pg.sh).
# The last line counts: "N passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/../page"
die() { printf 'error: %s\n' "$@" >&2; exit 1; }

../tools/prereq.sh page
export TACHO_PROGRAMS=${TACHO_PROGRAMS:-${CARGO_TARGET_DIR:-$(realpath ..)/target}/release}
[ -x "$TACHO_PROGRAMS/tacho-web" ] || die "there is no $TACHO_PROGRAMS/tacho-web; make program builds it"
# as in page.sh; with what only tests need
npm install --no-save --loglevel=error
npm run --silent check
npm test --silent
[ "${SOURCES:-}" != dsn ] || set -- --config e2e/sources.config.ts "$@"
exec node_modules/.bin/playwright test "$@"
