#!/usr/bin/env bash
# An answer without rows says how much of its period was observed, in the words of the
# extension. An answer with rows, or a report, has no such notice.
set -euo pipefail

psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }

createdb t_empty
export PGDATABASE=t_empty PGTZ=UTC
psql -f sql/tacho.sql >/dev/null
# no session is active for ten seconds of twenty; then one session for an hour
psql >/dev/null <<-END
	create table line as
	select timestamptz '2026-01-01 00:00+00' + n * interval '1 second' as time, null::integer as pid from generate_series(0, 9) n
	union all
	select timestamptz '2026-01-01 02:00+00' + n * interval '1 second', 1 from generate_series(0, 3600) n;
	select tacho.import_sessions('line', '1 second');
END
said() { # FUNCTION: what is said beside its rows
	psql -c "select count(*) from tacho.$1" 2>&1 >/dev/null | sed -E 's/^.*(NOTICE|DETAIL|HINT): +//' | paste -sd' '
}
idle="since => '2026-01-01 00:00+00', until => '2026-01-01 00:00:20+00'"
nowhere="since => '2025-01-01 00:00+00', until => '2025-01-01 00:00:20+00'"
half='no rows: 50.0000 % of the period was observed The period is 2026-01-01 00:00:00+00 to 2026-01-01 00:00:20+00.'
nothing='no rows: the period was not observed The period is 2025-01-01 00:00:00+00 to 2025-01-01 00:00:20+00. Use status to see the times that the history covers.'
check() {
	for call in "top('wait_event', " 'samples(' 'sessions(' 'blocking(' 'markers(' "timeline(by => 'database', " 'statements_history('; do
		same "$(said "$call$idle)")" "$half" "$1: $call idle"
		same "$(said "$call$nowhere)")" "$nothing" "$1: $call without history"
	done
	same "$(said "compare('database', '2026-01-01 00:00+00', '2026-01-01 00:00:10+00', '2026-01-01 00:00+00', '2026-01-01 00:00:20+00')")" "$half" "$1: compare"
	same "$(said "blocking(at => '2026-01-01 00:00:09+00')")" \
		'no rows: 16.6667 % of the period was observed The period is 2025-12-31 23:59:09+00 to 2026-01-01 00:00:09+00.' "$1: a moment"
	for call in "top('wait_event', since => '2026-01-01 02:00+00', until => '2026-01-01 02:01+00')" "aas($nowhere)" "report(null, $idle)" \
		"chart($nowhere)" "samples(since => '2026-01-01 02:00+00', until => '2026-01-01 02:01+00')" "timeline($nowhere)"; do
		same "$(said "$call")" '' "$1: $call"
	done
}
check hot
psql -c "select tacho._pack(tacho._ms(now()))" >/dev/null
check packed
# samples are gone, hour rows remain: whole minutes are known
psql -c "select tacho._roll_up_hours(tacho._ms(now()), 100000)" >/dev/null
for _ in 1 2 3 4; do psql -c "select tacho.rotate(true)" >/dev/null; done
same "$(said "top('wait_event', since => '2026-01-01 00:00+00', until => '2026-01-01 00:01+00')")" \
	'no rows: 16.6667 % of the period was observed The period is 2026-01-01 00:00:00+00 to 2026-01-01 00:01:00+00.' "hours"
