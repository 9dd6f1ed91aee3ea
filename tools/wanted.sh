#!/usr/bin/env bash
# usage: source tools/wanted.sh
#
# Selects tests by the names on the command line.

# wanted NAME FILTER...: true when NAME contains one of the filters, or there is none
wanted() {
	local name=$1 each
	shift
	[ $# -gt 0 ] || return 0
	for each; do [[ "$name" != *"$each"* ]] || return 0; done
	return 1
}
