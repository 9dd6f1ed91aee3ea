# sql_edition.functions.sh - functions of bench/sql_edition.sh, which sets hours,
# ash_hours, day, end and recent. connect starts the session that answers ask.
# shellcheck shell=bash disable=SC2154

sql() { psql -qAtX -v ON_ERROR_STOP=1 "$@"; }

# pg_ash: rows of the same kind for the last hours
ash_of() { # DATABASE
	local hour
	createdb "$1"
	psql -qX -v ON_ERROR_STOP=1 -d "$1" -f "ash/$1.sql" -f bench/sql_edition.sql >"$1.log" 2>&1
	for ((hour = hours - ash_hours; hour < hours; hour++)); do
		psql -qX -v ON_ERROR_STOP=1 -d "$1" -c "set work_mem = '256MB'; call ash_hour($day, $hour)"
	done >>"$1.log" 2>&1
	if [ "$(psql -qAtX -d "$1" -c "select to_regclass('ash.rollup_1m') is not null")" = t ]; then
		psql -qX -d "$1" -c "select ash.rollup_minute(100000)" -c "select ash.rollup_hour()" >>"$1.log" 2>&1
	fi
	psql -qX -d "$1" -c "vacuum analyze" >>"$1.log" 2>&1
}

connect() {
	{ coproc asker { exec 2>/dev/null; psql -qAtX; }; } 2>/dev/null
	exec 7<&"${asker[0]}" 8>&"${asker[1]}"
	use bench
}
ask() { # QUERY: one line
	local line
	echo "$1;" >&8
	read -r line <&7
	echo "$line"
}
use() { # DATABASE
	echo "\\c $1" >&8
	backend=$(ask "select pg_backend_pid()")
}
# median of some runs of a query (5): us of CPU of the backend, and us of wall time
median() {
	local before after begun i
	for ((i = 0; i < ${runs:-5}; i++)); do
		begun=$(date +%s%N) before=$(cut -d' ' -f1 "/proc/$backend/schedstat")
		ask "select count(*) from $1" >/dev/null
		after=$(cut -d' ' -f1 "/proc/$backend/schedstat")
		echo "$(((after - before) / 1000)) $((($(date +%s%N) - begun) / 1000))"
	done | sort -n | sed -n "$((${runs:-5} / 2 + 1))p"
}
row() { # NAME QUERY BUDGET
	median "$2" | awk -v name="$1" -v budget="$3" '{ printf "| %s | %.0f ms | %.0f ms | %s |\n", name, $1 / 1000, $2 / 1000, budget }'
}
# in the form of this version; the later one needs half a minute of CPU for an hour
in_ash() { # VERSION
	use "$1"
	if [ "$(ask "select to_regproc('ash.top_waits_at') is not null")" = t ]; then
		runs=1 row "1 h top wait_event, $1, one run" "ash.top_waits_at($recent, $end)" ""
	else
		runs=1 row "5 min top wait_event, $1, one run" "ash.top('wait_event', $end - interval '5 minutes', $end)" ""
	fi
}
# restarts the server, and drops its files from the page cache
cold() {
	pg_ctl -D data -w restart -l server.log >/dev/null
	find data/base -type f -size +64k -exec dd of={} oflag=nocache conv=notrunc,fdatasync count=0 status=none \;
}
once() { # NAME QUERY: the first time on the clock
	local begun
	cold
	psql -qAtX -c "select 1" >/dev/null
	begun=$(date +%s%N)
	sql -c "select count(*) from $2" >/dev/null
	echo "| $1 | $((($(date +%s%N) - begun) / 1000000)) ms |"
}
together() {
	local report
	sql -c "update tacho.setting set enabled = true, sample_interval = '1 second'" >/dev/null
	sql -c "call tacho.run_sampler('10 seconds')" >/dev/null 2>&1 &
	echo "select count(*) from tacho.top('wait_event', $recent, $end, backend_type => '(null)');" >readers.sql
	report=$(pgbench -n -c 5 -j 1 -T 10 -f readers.sql | sed -n 's/^latency average = //p')
	wait $!
	sql -c "update tacho.setting set enabled = false" >/dev/null
	echo "$report each; $(sql -c "select count(*) || ' ticks in ' || max(tick) - min(tick) + 1 || ' slots' from tacho.hot where start_ms >= tacho._ms($end)").$(sql -c "delete from tacho.hot")"
}

# the sampler of pg_cron for half a minute, while the data is made and both CPUs are
# busy
cron() {
	grep -q pg_cron data/postgresql.conf || { echo "pg_cron is not installed here."; return; }
	createdb cron
	local in_cron=(psql -qAtX -v ON_ERROR_STOP=1 -d cron)
	"${in_cron[@]}" -c "create extension pg_cron" -f sql/tacho.sql -c "select tacho.start()" >/dev/null 2>&1
	until [ "$("${in_cron[@]}" -c "select count(*) from tacho.hot where start_ms > tacho._ms(now()) - 2000")" -gt 0 ]; do sleep 0.5; done
	sleep 30
	echo "pg_cron $("${in_cron[@]}" -c "select extversion from pg_extension where extname = 'pg_cron'"), while the data was made: $(
		"${in_cron[@]}" -c "select format('%s slots of 1 s, %s ticks, %s of them late', max(tick) - min(tick) + 1, count(*), count(*) filter (where status = 2))
			from (select first_tick as tick, statuses[1] as status from tacho._hot_packs(0, 9223372036854775807)
				union all select first_tick + coalesce(tick_offsets[i], i - 1), coalesce(statuses[i], 1) from tacho.pack, generate_series(1, n_ticks) i) t")."
	"${in_cron[@]}" -c "select tacho.stop()" >/dev/null
}

wal() { ask "select pg_current_wal_lsn() - '0/0'"; }
ticks() { # COUNT FUNCTION
	local i
	for ((i = 0; i < $1; i++)); do ask "select $2::text || pg_sleep(0.02)::text" >/dev/null; done
}
tick_of() { # NAME DATABASE FUNCTION
	local begun first
	use "$2"
	ticks 10 "$3"
	sql -c "checkpoint"
	begun=$(wal)
	ticks 1 "$3"
	first=$(($(wal) - begun))
	ticks 10 "$3"
	printf '| %s | %s | %s bytes | %s bytes |\n' "$1" \
		"$(median "$3" | awk '{ printf "%.1f ms | %.1f ms", $1 / 1000, $2 / 1000 }')" "$(wal_of "$3")" "$first"
}
# median of the WAL of 51 ticks
wal_of() { # FUNCTION
	local begun i
	for ((i = 0; i < 51; i++)); do
		begun=$(wal)
		ticks 1 "$1"
		echo "$(($(wal) - begun))"
	done | sort -n | sed -n 26p
}
# WAL of packing the ticks that tick_of left, per tick
packing() {
	local begun count
	count=$(ask "select count(*) from tacho.hot")
	begun=$(wal)
	ask "select tacho._pack(tacho._ms(now()) + 60000)" >/dev/null
	echo "$((($(wal) - begun) / count))"
}
beside_rotation() {
	local report rotation
	echo "select count(*) from tacho.top('wait_event', $recent, $end);" >readers.sql
	(sleep 3; psql -qAtX -c '\timing on' -c "select tacho.rotate(true)") >rotation.txt &
	rotation=$!
	report=$(pgbench -n -c 5 -j 1 -T 10 -f readers.sql 2>&1 | sed -n 's/^latency average = //p; s/^number of failed transactions: /failed /p' | sort -n | paste -sd,)
	wait "$rotation"
	echo "$report; $(paste -sd' ' rotation.txt | sed 's/Time:/in/')."
}
