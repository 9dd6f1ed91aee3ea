#!/bin/bash
# usage: RUSTC_WRAPPER=tools/rustc-time.sh TACHO_RUSTC_TIMES=FILE cargo build
#
# Runs rustc for cargo, and appends a line with the package and the CPU seconds to FILE.
set -uo pipefail

TIMEFORMAT="${CARGO_PKG_NAME:--} %U %S"
{ time "$@" 2>&3; } 3>&2 2>>"${TACHO_RUSTC_TIMES:?}"
