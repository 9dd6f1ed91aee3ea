#!/usr/bin/env bash
# usage: bench/incidents.sh [-j N] [--judge] [--again] [NAME]...
#        bench/incidents.sh --agent [NAME]...
#        bench/incidents.sh --quiet [--server MINUTES]
#
# Plays the scripted incidents of bench/incidents on private servers, N at once (2), each
# with a cause and three innocent changes around it. Prints a table: the cause, its place
# in the answer of tacho changes, how many seconds its time is off, and the first finding.
#
# It goes on where it ended: incidents that were played in BENCH_DIR are not played again,
# but for --again. --judge only asks the tapes that are kept there, so that a change of
# the rules shows at once. --agent names the causes of these tapes by calls of tacho mcp
# alone, and fails if it names fewer than four of five. --quiet asks about weeks without a change.
#
# Environment
#   PG_CONFIG      installation to start from (default: pg_config in PATH)
#   TACHO_PROGRAM  tacho program (default: target/release/tacho), with tacho-mcp beside it
#   BENCH_DIR      where tapes and results stay (default: a new directory under /var/tmp)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "$here/../tools" && pwd)
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit ;; esac
[ "${1:-}" != -j ] || set -- --jobs "$2" "${@:3}"

dir=${BENCH_DIR:-$(mktemp -d /var/tmp/tacho-incidents.XXXXXX)}
mkdir -p "$dir"
chmod 755 "$dir"
dir=$(cd "$dir" && pwd -P)
echo "tapes and results: $dir" >&2
config=$dir/pg/bin/pg_config
[ -x "$config" ] || config=$("$tools/stage.sh" "$dir" 2>"$dir/build.log") || { tail "$dir/build.log" >&2; exit 1; }
for program in ${TACHO_PROGRAM:+"$TACHO_PROGRAM" "${TACHO_PROGRAM%/*}/tacho-mcp"}; do
	install -m 755 "$program" "${config%/*}/"
done
rm -rf "$dir/incidents"
cp -r "$here/incidents" "$dir/"
[ "$(id -u)" != 0 ] || chown -R "$("$tools/as-server.sh" --user)" "$dir"
cd "$dir"
script=run
case ${1:-} in --agent | --quiet) script=${1#--}; shift ;; esac
"$tools/as-server.sh" /usr/bin/python3 "$dir/incidents/$script.py" --bin "${config%/*}" --dir "$dir" "$@"
