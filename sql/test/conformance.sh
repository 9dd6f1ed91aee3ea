#!/usr/bin/env bash
# usage: conformance.sh, from run.sh
#
# Runs conformance/cases/*.json three times each: on hot rows, on packs, and
# with full hours summed up (there "source" may say so, and peak_sessions may
# be unknown). A file that needs a function the edition has not is skipped, and
# says so. The last line counts.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
passed=0 failed=0
for cases in "$here"/../../conformance/cases/*.json; do
	name=$(basename "${cases%.json}")
	input=$(dirname "$cases")/../inputs/$(sed -n 's/^ *"input": "\(.*\)",$/\1/p' "$cases")
	columns=$(head -n 1 "$input" | sed 's/,/ text,/g')
	createdb "c_$name"
	psql -qX -d "c_$name" -v ON_ERROR_STOP=1 -f "$here/../tacho.sql" >/dev/null
	psql -qAtX -d "c_$name" -v ON_ERROR_STOP=1 -f "$here/helpers.sql" -f "$here/conformance.sql" \
		-c "create table line ($columns text)" -c "\\copy line from '$input' csv header" \
		-c "update tacho.setting set node = (pg_read_file('$cases')::json ->> 'node')" \
		-c "select tacho.import_sessions('line')" >/dev/null
	missing=$(psql -qAtX -d "c_$name" -c "select test.missing(pg_read_file('$cases')::json)")
	[ -z "$missing" ] || { echo "$name: skipped, the edition has no $missing"; continue; }
	for mode in hot packed hours; do
		case $mode in
		packed) psql -qAtX -d "c_$name" -c "select tacho._pack(tacho._ms(now()))" >/dev/null ;;
		hours) psql -qAtX -d "c_$name" -c "select tacho._roll_up_hours(tacho._ms(now()), 100000)" >/dev/null ;;
		esac
		result=$(psql -qAtX -d "c_$name" -v ON_ERROR_STOP=1 -F ' ' \
			-c "select * from test.conformance(pg_read_file('$cases')::json, '$mode')")
		printf '%s\n' "$result" | grep -v '^ok' | sed "s/^/$name, $mode: /" || true
		passed=$((passed + $(grep -c '^ok' <<<"$result" || true)))
		failed=$((failed + $(grep -c '^not ok' <<<"$result" || true)))
	done
done
echo "$passed cases passed, $failed failed"
