#!/usr/bin/env bash
# usage: tools/debian-mirror.sh [security]
#
# Prints the address of a Debian mirror: TACHO_DEBIAN_MIRROR, or the one in this
# system's apt configuration; nothing if neither exists. "security" is the mirror of
# security updates.
set -euo pipefail

case $* in
'') label=Debian ;;
security) label=Debian-Security ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
if [ "$label" = Debian ] && [ -n "${TACHO_DEBIAN_MIRROR:-}" ]; then
	echo "$TACHO_DEBIAN_MIRROR"
	exit
fi
# shellcheck disable=SC2016 # apt expands these
apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(SITE)' \
	'Created-By: Packages' 2>/dev/null |
	sed -n "/^Debian|$label|http/{s/.*|//p;q}"
