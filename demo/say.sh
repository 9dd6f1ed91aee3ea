# say.sh - how the demos speak: errors, and titles in bold on a terminal unless
# NO_COLOR is set. To be sourced.
# shellcheck shell=bash

die() { printf 'error: %s\n' "$@" >&2; exit 1; }
say() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
