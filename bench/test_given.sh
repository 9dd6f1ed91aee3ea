# shellcheck shell=bash disable=SC2034,SC2154 # variables and functions of test.sh
# The part of bench/test.sh about a running server, with a setting of its own in
# postgresql.auto.conf. Sourced, not run.

mkdir -m 777 "$dir/socket"
as_server "$bin/initdb" -D "$dir/pg/given" -A trust -U postgres -N --locale=C >/dev/null
cat >>"$dir/pg/given/postgresql.conf" <<END
unix_socket_directories = '$dir/socket'
listen_addresses = ''
shared_preload_libraries = 'pg_stat_statements'
END
sed -i '1i local all locked scram-sha-256' "$dir/pg/given/pg_hba.conf"
as_server "$bin/pg_ctl" -D "$dir/pg/given" -l "$dir/pg/given.log" -w start >/dev/null
given=$dir/pg/given
sql() { "$bin/psql" -XAtq -h "$dir/socket" -U postgres -d postgres "$@"; }
sql -c "alter system set checkpoint_timeout = '7min'" -c "select pg_reload_conf()" -c "create role plain login" \
	-c "create role locked login password 'right'" >/dev/null
export PGPASSWORD=wrong # psql must not ask for it
dsn() { echo "host=$dir/socket user=${1:-postgres} dbname=postgres"; }
untouched() {
	[ "$(sql -c "select count(*) from pg_database where datname = 'tacho_bench'")" = 0 ] &&
		[ "$(sql -c "select string_agg(name || '=' || setting, ',') from pg_file_settings where sourcefile like '%auto.conf'")" = checkpoint_timeout=7min ] &&
		[ "$(sql -c "show checkpoint_timeout")" = 7min ]
}
cat >"$dir/given.toml" <<'END'
name = "given"
title = "Counting on and off"
question = "?"
rounds = 1
scale = 1
[pgbench]
seconds = 1
warmup = 0
clients = [1]
workload = [{ name = "select-only", builtin = "select-only" }]
[[variant]]
name = "counts"
preload = ["pg_stat_statements"]
[[variant]]
name = "does not"
preload = ["pg_stat_statements"]
settings = { "pg_stat_statements.track" = "none", checkpoint_timeout = "11min" }
[[metric]]
name = "checkpoint_timeout"
[metric.sql]
counts = "select setting from pg_settings where name = 'checkpoint_timeout'"
"does not" = "select setting from pg_settings where name = 'checkpoint_timeout'"
END
timeouts() { [ "$(sed -n 's/.*checkpoint_timeout,//p' "$dir/given/runs.csv" | xargs)" = "420 660" ]; }
check "a given server is measured" bench "$dir/given.toml" --dsn "$(dsn)" --output "$dir/given"
check "with the settings of each variant" timeouts
check "and reported" whole given
check "and is as before" untouched
check "a setting of sessions is measured there" bench setting --dsn "$(dsn)" --name work_mem --values 64kB,64MB \
	--scale 1 --rounds 1 --sql "select count(distinct aid) from pgbench_accounts" --output "$dir/session"
check "a setting that takes a restart is refused" refused 'setting "shared_buffers" takes a restart' setting \
	--dsn "$(dsn)" --name shared_buffers --values 64MB,128MB --sql "select 1" --output "$dir/restart"
check "so are variants with other libraries" refused "different shared_preload_libraries" overhead --dsn "$(dsn)"
check "cold caches are refused" refused "cannot be emptied" analyze --dsn "$(dsn)"
check "a server that is not there is named" refused "could not connect" overhead --variants none \
	--dsn "host=$dir/nowhere user=postgres"
check "a wrong password is told" refused "password authentication failed" overhead --variants none --dsn "$(dsn locked)"
check "a password among the arguments is refused" refused "other users of this machine can see" overhead \
	--variants none --dsn "$(dsn locked) password=right"
check "a role that may not create databases is told what it lacks" refused "may not create databases" overhead \
	--variants none --dsn "$(dsn plain)"
sql -c "alter role plain createdb"
check "one that may needs no more for settings of sessions" bench setting --dsn "$(dsn plain)" --name work_mem \
	--values 64kB --scale 0 --rounds 1 --sql "select 1" --output "$dir/plain"
check "but may not change those of the server" refused "for which this role lacks the privilege" setting \
	--dsn "$(dsn plain)" --name checkpoint_timeout --values 8min --sql "select 1" --output "$dir/no_right"
check "whatever failed has changed nothing" untouched
altered() { [ "$(sql -c "select count(*) from pg_file_settings where setting = '11min'")" = 1 ]; }
cut_off altered "$dir/given.toml" --dsn "$(dsn)" --seconds 60 --output "$dir/given_cut"
check "Ctrl-C ends it with 130" [ "$status" = 130 ]
check "and puts everything back" untouched
check "and removes the way back" [ ! -e "$dir/given_cut/restore.sql" ]
