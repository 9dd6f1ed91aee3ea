#!/usr/bin/env bash
# usage: conformance.sh, from run.sh
#
# Runs conformance/cases/*.json three times each: on hot rows, on packs, and with full
# hours summed up (then "source" may say so, and peak_sessions may be unknown). A case
# that needs values that the edition does not record is skipped, with a message. The
# last line has the counts.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
passed=0 failed=0
for cases in "$here"/../../conformance/cases/*.json; do
	name=$(basename "${cases%.json}")
	input=$(dirname "$cases")/../inputs/$(sed -n 's/^ *"input": "\(.*\)",$/\1/p' "$cases")
	createdb -T installed "c_$name"
	with() { sed -n "s/^  \"with\": {.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$cases"; }
	loads=()
	load() { # TABLE FILE
		loads+=(-c "create table $1 ($(head -n 1 "$2" | sed 's/,/ text,/g') text)" -c "\\copy $1 from '$2' csv header")
	}
	load line "$input"
	call="import_sessions('line')"
	[ -z "$(with locks)" ] || { load lock_line "${input%/*}/$(with locks)"; call="import_sessions('line', locks => 'lock_line')"; }
	loads+=(-c "select tacho.$call")
	[ -z "$(with markers)" ] || { load marker_line "${input%/*}/$(with markers)"; loads+=(-c "select tacho.import_markers('marker_line')"); }
	psql -qAtX -d "c_$name" -v ON_ERROR_STOP=1 -f "$here/helpers.sql" -f "$here/conformance.sql" \
		-c "update tacho.setting set node = (pg_read_file('$cases')::json ->> 'node')" "${loads[@]}" >/dev/null
	for mode in hot packed hours; do
		case $mode in
		packed) psql -qAtX -d "c_$name" -c "select tacho._pack(tacho._ms(now()))" >/dev/null ;;
		hours) psql -qAtX -d "c_$name" -c "select tacho._roll_up_hours(tacho._ms(now()), 100000)" >/dev/null ;;
		esac
		result=$(psql -qAtX -d "c_$name" -v ON_ERROR_STOP=1 -F ' ' \
			-c "select * from test.conformance(pg_read_file('$cases')::json, '$mode')")
		[ $mode = hours ] || result=$(sed '/: skipped, /d' <<<"$result")
		printf '%s\n' "$result" | grep -v '^ok' | sed "s/^/$name, $mode: /" || true
		passed=$((passed + $(grep -c '^ok' <<<"$result" || true)))
		failed=$((failed + $(grep -c '^not ok' <<<"$result" || true)))
	done
done
echo "$passed cases passed, $failed failed"
