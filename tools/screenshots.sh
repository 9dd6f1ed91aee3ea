#!/usr/bin/env bash
# usage: tools/screenshots.sh
#
# Takes the pictures of docs/pictures from the storm of the demo, which must run (make demo): the
# page, light and dark. If demo/incidents.sh has played the incidents, it also takes the pictures
# of the guide, after the clicks that lead to the cause. Needs the programs of "make program" and
# installs the rest; TACHO_PROGRAMS is another directory of the programs.
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd)
die() { printf 'error: %s\n' "$@" >&2; exit 1; }

[ -e "$repo/.demo/load" ] || die "there is no demo; make demo starts one"
"$repo/tools/prereq.sh" page
command -v pngquant >/dev/null || die "there is no pngquant (Debian: pngquant)"
TACHO_PROGRAMS=${TACHO_PROGRAMS:-${CARGO_TARGET_DIR:-$repo/target}/release}
TACHO_DEMO=$(realpath "$repo/.demo")
export TACHO_PROGRAMS TACHO_DEMO
cd "$repo/page"
npm install --no-save --loglevel=error
node_modules/.bin/playwright test --config e2e/pictures.config.ts
cd "$repo/docs/pictures"
# fewer colours: a third of the bytes without a visible difference
pngquant --force --skip-if-larger --strip --ext .png 128 -- *.png
du -b -- *.png
