#!/usr/bin/env bash
# pg_cron runs the sampler: about a tick a second, without one connection each.
set -euo pipefail

[[ "$TACHO_PRELOAD" == *pg_cron* ]] || { echo "pg_cron is not installed here"; exit 0; }
psql() { command psql -qAtX -v ON_ERROR_STOP=1 -d postgres "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }

psql -c "create extension pg_cron" -f sql/tacho.sql >/dev/null
same "$(psql -c "select step from tacho.start() where step = 'pg_cron'")" pg_cron "start"
psql -c "select * from tacho.start()" >/dev/null
same "$(psql -c "select count(*) from cron.job")" 1 "one job"
ticks() { psql -c "select coalesce(sum(n_ticks), 0) from (select n_ticks from tacho.hot union all select n_ticks from tacho.pack) x"; }
for ((i = 0; i < 140; i++)); do # it begins within a minute
	[ "$(ticks)" -lt 15 ] || break
	sleep 1
done
[ "$(ticks)" -ge 15 ] || { echo "no ticks"; psql -c "select * from cron.job_run_details"; exit 1; }
psql -c "select result from tacho.stop()" >/dev/null
for ((i = 0; i < 100; i++)); do
	[ "$(psql -c "select count(*) from pg_stat_activity where query like 'call tacho.run_sampler%'")" != 0 ] || break
	sleep 0.1
done
same "$(psql -c "select count(*) from pg_stat_activity where query like 'call tacho.run_sampler%' and state = 'active'")" 0 "stop ends it"
same "$(psql -c "select count(*) from cron.job")" 0 "and its job"
