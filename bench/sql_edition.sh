#!/usr/bin/env bash
# usage: bench/sql_edition.sh [HOURS]
#
# Measures the SQL edition on a private server of PG_CONFIG and prints a page:
# bytes of the uniform day (HOURS of it, default 24: 50 sessions, 21 waits, 200
# queries, every second, drawn independently), times of readers, time and WAL
# of a tick beside 50, 250 and 1,000 active sessions.
set -euo pipefail

hours=${1:-24}
repo=$(cd "$(dirname "$0")/.." && pwd -P)
if [ -z "${TACHO_SCRATCH:-}" ]; then
	scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/tacho-bench.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	cp -R "$repo/sql" "$repo/bench" "$scratch"
	chmod -R go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$repo/tools/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	TACHO_SCRATCH=$scratch "$repo/tools/as-server.sh" "$scratch/bench/sql_edition.sh" "$@"
	exit
fi

cd "$TACHO_SCRATCH"
bin=$("${PG_CONFIG:-pg_config}" --bindir)
export PATH=$bin:$PATH LC_ALL=C.UTF-8 PGHOST=$TACHO_SCRATCH PGPORT=5432 PGUSER=postgres PGDATABASE=bench
initdb -D data -U postgres -A trust -E UTF8 --no-sync >/dev/null
cat >>data/postgresql.conf <<END
unix_socket_directories = '$TACHO_SCRATCH'
listen_addresses = ''
fsync = off
shared_buffers = 256MB
max_connections = 1100
jit = off
END
pg_ctl -D data -l server.log -w start >/dev/null
trap 'pg_ctl -D data -m immediate stop >/dev/null' EXIT
createdb bench
sql() { psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
sql -f sql/tacho.sql -f bench/sql_edition.sql >/dev/null
day="'2026-03-01 00:00+00'::timestamptz"
for ((hour = 0; hour < hours; hour++)); do
	sql -c "set work_mem = '256MB'; call uniform_hour($day, $hour)" >/dev/null
done
packed=$(sql -c "select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = 'tacho'::regnamespace and relname ~ '^(pack|session|activity)_'")
sql -c "select tacho._roll_up_hours(tacho._ms($day + interval '2 days'), 100)" -c "vacuum full tacho.hot" -c "vacuum analyze" >/dev/null
hourly=$(sql -c "select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = 'tacho'::regnamespace and relname ~ '^(hour|word)' and relkind = 'r'")
samples=$((hours * 180000))

coproc asker { exec 2>/dev/null; psql -qAtX; }
exec 7<&"${asker[0]}" 8>&"${asker[1]}"
ask() { # QUERY: one line
	local line
	echo "$1;" >&8
	read -r line <&7
	echo "$line"
}
backend=$(ask "select pg_backend_pid()")
# median of 5 runs of a query: ms on the clock, and ms the backend was on a CPU
median() {
	local before after begun
	for _ in 1 2 3 4 5; do
		begun=$(date +%s%N) before=$(cut -d' ' -f1 "/proc/$backend/schedstat")
		ask "select count(*) from $1" >/dev/null
		after=$(cut -d' ' -f1 "/proc/$backend/schedstat")
		echo "$(((after - before) / 1000)) $((($(date +%s%N) - begun) / 1000))"
	done | sort -n | sed -n 3p
}
row() { # NAME QUERY BUDGET
	median "$2" | awk -v name="$1" -v budget="$3" '{ printf "| %s | %.0f ms | %.0f ms | %s |\n", name, $1 / 1000, $2 / 1000, budget }'
}
end="$day + $hours * interval '1 hour'"

cat <<END
# SQL edition

$(sql -c "select split_part(version(), ' on ', 1)"), $(nproc) CPUs, load average $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F). Command: \`bench/sql_edition.sh $hours\`.
Data: uniform, $hours h, 50 sessions every second, $samples session-samples.

| Bytes | | per session-sample |
|---|---|---|
| ring with dictionaries and indexes | $packed | $(awk "BEGIN { printf \"%.2f\", $packed / $samples }") |
| hour rows with indexes | $hourly | $(awk "BEGIN { printf \"%.2f\", $hourly / $samples }") |

pg_ash: 9.3 bytes without session identity. Budget: half of it.

Medians of 5 runs, warm: time the backend was on a CPU, and on the clock.

| Question | CPU | Clock | Budget |
|---|---|---|---|
$(row "yardstick: count 1,000,000 rows" "generate_series(1, 1000000)" "")
$(row "1 h top wait_event" "tacho.top('wait_event', $day + interval '5 min', $day + interval '65 min')" "30 ms")
$(row "1 h top wait_event of a backend type, from samples" "tacho.top('wait_event', $day + interval '5 min', $day + interval '65 min', backend_type => '(null)')" "")
$(row "$hours h top wait_event" "tacho.top('wait_event', $day, $end)" "60 ms")
$(row "$hours h top query_id" "tacho.top('query_id', $day, $end)" "60 ms")
$(row "$hours h timeline" "tacho.timeline($day, $end, '1 minute')" "60 ms")
$(row "$hours h timeline by wait_event, hours" "tacho.timeline($day, $end, '1 hour', by => 'wait_event')" "60 ms")
$(row "$hours h one query and wait, hours" "tacho.aas($day, $end, '1 hour', query_id => '7', wait_event => 'IO:Event0')" "20 ms")
$(row "$hours h one query and wait, minutes" "tacho.aas($day, $end, query_id => '7', wait_event => 'IO:Event0')" "600 ms")
$(row "$hours h top wait_event of one user" "tacho.top('wait_event', $day, $end, username => 'user1', application => 'app1')" "600 ms")

| Tick beside | CPU | clock | WAL steady | WAL of the first behind a checkpoint |
|---|---|---|---|---|
END
sql -c "delete from tacho.hot" -c "update tacho.setting set enabled = true, sample_interval = '10 milliseconds'" >/dev/null
wal() { ask "select pg_current_wal_lsn() - '0/0'"; }
tick() { ask "select tacho.take_sample() || pg_sleep(0.02)::text"; }
for clients in 50 250 1000; do
	echo "select pg_sleep(600)" >sleep.sql
	pgbench -n -c "$clients" -j 2 -T 600 -f sleep.sql postgres >/dev/null 2>&1 &
	load=$!
	until [ "$(ask "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and pid <> pg_backend_pid()")" = "$clients" ]; do sleep 0.2; done
	for _ in {1..10}; do tick >/dev/null; done
	sql -c "checkpoint"
	begun=$(wal)
	tick >/dev/null
	first=$(($(wal) - begun))
	for _ in {1..10}; do tick >/dev/null; done
	begun=$(wal)
	for _ in {1..51}; do tick >/dev/null; done
	steady=$((($(wal) - begun) / 51))
	printf '| %s active sessions | %s | %s bytes | %s bytes |\n' "$clients" \
		"$(median "tacho.take_sample()" | awk '{ printf "%.1f ms | %.1f ms", $1 / 1000, $2 / 1000 }')" "$steady" "$first"
	kill "$load"
	wait "$load" 2>/dev/null || true
	sql -c "select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event = 'PgSleep'" >/dev/null
done
