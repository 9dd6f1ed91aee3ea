#!/usr/bin/env bash
# Settings of the role that runs the sampler do not stop it, and their effects are
# reported. The sampler is no load to the sampler of another database.
set -euo pipefail

psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
psql -c "create role settings_r login" -c "grant pg_monitor to settings_r" -c "create database t_settings owner settings_r" -c "create database t_beside"
export PGDATABASE=t_settings
ask() { psql -U settings_r "$@" 2>&1; }

# the role installs, starts and samples with every setting that could stop it
setting() { # NAME VALUE, if this version has the setting
	[ "$(psql -c "select count(*) from pg_settings where name = '$1'")" = 0 ] || psql -c "alter role settings_r set $1 = '$2'"
}
setting default_transaction_read_only on
setting default_transaction_isolation serializable
setting default_transaction_deferrable on
ask -f sql/tacho.sql >/dev/null
setting lock_timeout 1
setting idle_in_transaction_session_timeout 1
setting transaction_timeout 300
same "$(ask -c "select tacho.start()" | sed -n 's/.*\(cannot execute UPDATE in a read-only transaction\).*/\1/p')" \
	"cannot execute UPDATE in a read-only transaction" "what a person calls is an error of the server"
psql -c "select tacho.start('1 second')" >/dev/null
same "$(ask -c "call tacho.run_sampler('3 seconds')")" "" "a run"
same "$(psql -c "select count(*) >= 3 from tacho.hot where coalesce(status, 1) < 3")" t "its ticks"
same "$(psql -c "select count(*) from tacho.failure")" 0 "its maintenance"
same "$(ask -c "select tacho.take_sample()" -c "select result from tacho.maintain()")" $'read only\nread only' "what cannot write says so"
same "$(ask -c "call tacho.run_sampler('0')" -c "show default_transaction_read_only" -c "show application_name")" $'on\npsql' "it leaves the session as it was"

# a statement_timeout cannot be changed while the statement runs
psql -c "alter role settings_r reset all" -c "alter role settings_r set statement_timeout = '5s'"
same "$(ask -c "select result from tacho.start() where step = 'statement_timeout'")" \
	"5s: it ends each run of the sampler, and ticks are missing until the next one; say: alter role settings_r in database t_settings set statement_timeout = 0" "start says what to do"
same "$(ask -c "call tacho.run_sampler()" | sed 's/^psql:.*NOTICE/NOTICE/')" \
	$'NOTICE:  the sampler ends: statement_timeout is near\nHINT:  Set statement_timeout = 0 for the role that calls it.' "it ends without an error"
same "$(psql -c "select value from tacho.status() where metric ~ 'statement_timeout'")" 1 "status counts it"
same "$(psql -c "select count(*) from tacho.hot where status = 3")" 0 "no tick has failed"
psql -c "alter role settings_r reset all"

# two samplers on one server
psql -d t_beside -f sql/tacho.sql -c "select tacho.start('1 second')" >/dev/null
command psql -qAtX -U settings_r -c "call tacho.run_sampler()" >/dev/null 2>&1 &
sampler=$!
seen="select count(*) from pg_stat_activity where application_name = 'tacho sampler' and state = 'active'"
for ((i = 0; i < 600; i++)); do [ "$(psql -c "$seen and wait_event = 'PgSleep'")" = 0 ] || break; sleep 0.1; done
same "$(psql -c "$seen")" 1 "others see one active session, by its name"
psql -d t_beside -c "call tacho.run_sampler('5 seconds')"
same "$(psql -d t_beside -c "select count(*) from tacho.samples(scope => 'all') where wait_event = 'PgSleep'")" 0 "the other sampler's sleep is not recorded"
PGAPPNAME='tacho sampler' command psql -qAtX -d postgres -c "select count(*) from generate_series(1, 1e11) i" >/dev/null 2>&1 &
liar=$!
for ((i = 0; i < 600; i++)); do [ "$(psql -c "$seen and query ~ 'generate_series'")" = 1 ] && break; sleep 0.1; done
psql -d t_beside -c "call tacho.run_sampler('3 seconds')"
same "$(psql -d t_beside -c "select count(*) > 0 from tacho.samples() where application = 'tacho sampler' and cpu is not null and state = 'active'")" t "work under its name is"
psql -c "select tacho.stop()" -c "select pg_terminate_backend(pid) from pg_stat_activity where query ~ 'generate_series' and pid <> pg_backend_pid()" >/dev/null
wait $sampler $liar || true
