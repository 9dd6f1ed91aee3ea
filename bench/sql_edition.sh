#!/usr/bin/env bash
# usage: [ASH_SQL="ash-1.0.sql ash-install.sql"] bench/sql_edition.sh [HOURS]
#
# Measures the SQL edition on a private server of PG_CONFIG and prints a page:
#   - bytes of the uniform day, or of HOURS of it (default 24; above 4, a multiple of 4);
#   - times of readers: warm, cold, and five at once beside the sampler and a rotation;
#   - time and WAL of a tick with 50, 250 and 1,000 active sessions;
#   - if pg_cron is installed, the ticks that it takes at an interval of a second.
# The uniform day has 50 sessions, 21 waits and 200 queries, every second. Up to 4 hours are
# drawn independently and then repeated.
# ASH_SQL names installation scripts of pg_ash (github.com/NikolayS/pg_ash). pg_ash is measured
# beside it on ASH_HOURS (1) of the same rows. Each version has its own database, with its sums
# if it has them. Takes about 8 minutes.
set -euo pipefail

hours=${1:-24} ash_hours=${ASH_HOURS:-1}
drawn=$((hours < 4 ? hours : 4))
repo=$(cd "$(dirname "$0")/.." && pwd -P)
if [ -z "${TACHO_SCRATCH:-}" ]; then
	scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/tacho-bench.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	cp -R "$repo/sql" "$repo/bench" "$scratch"
	mkdir "$scratch/ash"
	for file in ${ASH_SQL:-}; do cp "$file" "$scratch/ash/$(basename "$file" .sql | tr -c 'a-z0-9\n' _).sql"; done
	chmod -R go+rX "$scratch"
	[ "$(id -u)" != 0 ] || chown -R "$("$repo/tools/as-server.sh" --user)" "$scratch"
	cd "$scratch"
	TACHO_COMMIT=$(git -C "$repo" rev-parse --short HEAD) TACHO_SCRATCH=$scratch "$repo/tools/as-server.sh" "$scratch/bench/sql_edition.sh" "$@"
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
compute_query_id = on
END
if [ -e "$("${PG_CONFIG:-pg_config}" --sharedir)/extension/pg_cron.control" ]; then
	printf "shared_preload_libraries = 'pg_cron'\ncron.host = '%s'\ncron.database_name = 'cron'\n" "$TACHO_SCRATCH" >>data/postgresql.conf
fi
pg_ctl -D data -l server.log -w start >/dev/null
trap 'pg_ctl -D data -m immediate stop >/dev/null' EXIT
createdb bench
# shellcheck source=bench/sql_edition.functions.sh
source bench/sql_edition.functions.sh
sql -f sql/tacho.sql -f bench/sql_edition.sql >/dev/null
cron >cron.txt &
day="date_trunc('hour', now()) - interval '$hours hours'"
day="'$(sql -c "select $day")'::timestamptz"

versions=()
for file in ash/*.sql; do [ ! -e "$file" ] || versions+=("$(basename "$file" .sql)"); done
(for version in "${versions[@]}"; do ash_of "$version"; done) &
for ((hour = 0; hour < drawn; hour++)); do
	sql -c "set work_mem = '256MB'; call uniform_hour($day, $hour)" >/dev/null
done
sql -c "call again($drawn, $((hours / drawn)))" >/dev/null
packed=$(sql -c "select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = 'tacho'::regnamespace and relname ~ '^(pack|session|activity|awaited)_'")
sql -c "select tacho._roll_up_hours(tacho._ms($day + interval '$hours hours'), 100)" -c "vacuum full tacho.hot" -c "vacuum analyze" >/dev/null
hourly=$(sql -c "select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = 'tacho'::regnamespace and relname ~ '^(hour|word)' and relkind = 'r'")
samples=$((hours * 180000))
sql -c "call month($hours)" -c "vacuum analyze" >/dev/null

wait
connect
end="$day + $hours * interval '1 hour'"
recent="$end - interval '1 hour'"

cat <<END
# SQL edition

$(sql -c "select split_part(version(), ' on ', 1)"), $(nproc) CPUs, load average $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F), commit $TACHO_COMMIT. Command: \`bench/sql_edition.sh $hours\`.
Data: uniform, $hours h ($drawn h are drawn and then repeated), 50 sessions every second, $samples session-samples. The month has the hour rows of these hours 30 times.
Figures are medians of 5. CPU is the CPU time of the backend, which can be compared even if the machine is busy.

| Bytes | | per session-sample |
|---|---|---|
| ring with dictionaries and indexes | $packed | $(awk "BEGIN { printf \"%.2f\", $packed / $samples }") |
| hour rows with indexes | $hourly | $(awk "BEGIN { printf \"%.2f\", $hourly / $samples }") |

$(for version in "${versions[@]}"; do
	bytes=$(psql -qAtX -d "$version" -c "select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = 'ash'::regnamespace and relname ~ '^(sample_0|query_map_0|wait_event_map|rollup_1.)$'")
	echo "$version, $ash_hours h with sums: $bytes bytes, $(awk "BEGIN { printf \"%.2f\", $bytes / $ash_hours / 180000 }") per session-sample, without session identity."
done)
Budget: half of the bytes of pg_ash (9.3 in its own measurement).

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
$(row "month, avg, peak and p99 of the load" "tacho.aas($end - interval '30 days', $end)" "200 ms; p99 1 s")
$(row "month, top wait_event: avg, peak and p99 of each" "tacho.top('wait_event', $end - interval '30 days', $end)" "1 s")
$(for version in "${versions[@]}"; do in_ash "$version"; done)

| Cold: after a restart, files out of the cache | Clock, with connecting |
|---|---|
$(once "1 h top wait_event" "tacho.top('wait_event', $recent, $end)")
$(once "$hours h top wait_event" "tacho.top('wait_event', $day, $end)")

Five readers (1 h top wait_event from samples) for 10 s beside the sampler: $(together)

The sessions of these ticks run 20 different statements that sleep. Nothing begins between two ticks, but the first tick of a minute stores all starts.
Steady is the median of 51 ticks, without autovacuum. Budget: at most the cost of a tick of pg_ash.

| Tick beside | CPU | clock | WAL steady | WAL of the first behind a checkpoint |
|---|---|---|---|---|
END
# writes of autovacuum are no part of a tick
sql -c "alter system set autovacuum = off" -c "select pg_reload_conf()" -c "truncate tacho.hot" \
	-c "update tacho.setting set enabled = true, sample_interval = '10 milliseconds'" >/dev/null
connect
load=()
for ((i = 1; i <= 20; i++)); do
	echo "select pg_sleep(600)$(printf ', 1%.0s' $(seq $i))" >"sleep$i.sql"
	load+=(-f "sleep$i.sql")
done
for clients in 50 250 1000; do
	pgbench -n -c "$clients" -j 2 -T 600 "${load[@]}" postgres >/dev/null 2>&1 &
	pid=$!
	use bench
	until [ "$(ask "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and pid <> pg_backend_pid()")" = "$clients" ]; do sleep 0.2; done
	tick_of "$clients active sessions" bench "tacho.take_sample()"
	packing=$(packing)
	for version in "${versions[@]}"; do tick_of "$clients, $version" "$version" "ash.take_sample()"; done
	echo "| $clients, packing in a tick's share | | | $packing bytes | |"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
	sql -c "select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event = 'PgSleep'" >/dev/null
done
echo
echo "Five readers (1 h top wait_event) for 10 s beside a rotation: $(beside_rotation)"
echo
cat cron.txt
echo
cat bench/sql_edition.tried.md
