#!/usr/bin/env bash
# usage: fleet/venv.sh [EXTRA]...
#
# Makes fleet/.venv (FLEET_VENV), unless it exists for these dependencies, and installs the
# package with optional dependencies, such as test or clickhouse. Announces large
# installations, since they may take a minute or two.
set -euo pipefail
cd "$(dirname "$0")"

venv=${FLEET_VENV:-.venv}
pip() {
	"$venv/bin/pip" install --progress-bar off --disable-pip-version-check --editable "$1" |
		sed -unE 's/^ *(Downloading|Using cached) ([^ -]+-[^ -]+)-[^ ]* (\(.*MB\))$/pip: \2 \3/p
			s/^Installing collected packages: .*/pip: unpacking/p' >&2
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
	echo "error: Python 3.11 or later is needed, python3 is $(python3 --version 2>&1)" >&2
	exit 1
}
wanted=$(cat pyproject.toml engines/__init__.py | sha256sum)
if [ "$(cat "$venv/made-of" 2>/dev/null)" != "$wanted $PWD" ]; then
	echo 'pip: installing the Python package, once: a minute or two' >&2
	rm -rf "$venv"
	python3 -m venv "$venv"
	pip .
	echo "$wanted $PWD" >"$venv/made-of"
fi
for extra; do
	[ -e "$venv/has-$extra" ] || pip ".[$extra]"
	touch "$venv/has-$extra"
done
