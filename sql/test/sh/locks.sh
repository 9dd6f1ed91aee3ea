#!/usr/bin/env bash
# What real sessions wait for: holder, queue, a prepared transaction, and a
# tick that comes while a lock of tacho itself is held.
set -euo pipefail

export PGDATABASE=t_locks
createdb "$PGDATABASE"
psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
psql -f sql/tacho.sql -c "update tacho.setting set enabled = true" -c "create table stock (id int, n int)" -c "insert into stock values (1, 1)" >/dev/null
hold() { # NAME SQL: a session that runs it and stays
	mkfifo "$1.in"
	PGAPPNAME=$1 command psql -qAtX <"$1.in" >"$1.out" 2>&1 &
	exec {fd}>"$1.in"
	echo "$2" >&"$fd"
}
await() { # COUNT QUERY
	for ((i = 0; i < 2000; i++)); do [ "$(psql -c "$2")" != "$1" ] || return 0; sleep 0.05; done
	echo "never $1: $2"
	exit 1
}
waiting="select count(*) from pg_locks where not granted"

psql -c "begin; create table paid (id int primary key); insert into paid values (1); prepare transaction 'paid 4711'"
hold holder "begin; update stock set n = 2; select pg_advisory_lock(-7);"
await 1 "select count(*) from pg_locks where locktype = 'advisory' and granted"
hold alter "alter table stock add m int;"
await 1 "$waiting"
hold reader "select * from stock;"
await 2 "$waiting"
hold advised "select pg_advisory_lock(-7);"
await 3 "$waiting"
hold paid "create table paid (id int);"
await 4 "$waiting"
await ok "select replace(tacho.take_sample(), 'late', 'ok')"
shown() {
	psql -F ' ' -c "select level, coalesce(application, tree), via, replace(object, (select oid::text from pg_database where datname = current_database()), 'DB'),
			relation, mode, mode_held, waited between '0' and '5 minutes', waiters
		from tacho.blocking(at => now()) where object is distinct from null and object !~ '^transactionid' or level = 0 order by 1, 2, 4" |
		sed "s/DB\\/[0-9]*/DB\\/OID/"
}
expected="0 holder       3
0 prepared 'paid 4711'       1
1 advised lock advisory -7  ExclusiveLock ExclusiveLock t 0
1 alter lock relation DB/OID public.stock AccessExclusiveLock RowExclusiveLock t 1
2 reader queue relation DB/OID public.stock AccessShareLock  t 0"
same "$(shown)" "$expected" "hot"
same "$(psql -c "select count(distinct w) from tacho.hot, unnest(waits) w")" 4 "what they wait for"
same "$(psql -c "select tacho._pack(9223372036854775807)" -c "select count(*) from tacho.hot")" $'1\n0' "packed"
same "$(shown)" "$expected" "from packs"
same "$(psql -F ' ' -c "select kind, prepared_gid, locktype, mode_held, waiters from tacho.blocking(since => now() - interval '10 minutes') where kind <> 'session'")" \
	"prepared transaction paid 4711 transactionid ExclusiveLock 1" "the head of a window"
await ok "select replace(tacho.take_sample(), 'late', 'ok')"
same "$(psql -c "select count(*) from tacho.awaited")" 4 "a wait is one row for as long as it lasts"
psql -c "alter function tacho._conflict rename to _conflict_whole" \
	-c "create function tacho._conflict(requested text, held text) returns boolean language sql return false"
await ok "select replace(tacho.take_sample(), 'late', 'ok')"
same "$(psql -F ' ' -c "select level, coalesce(application, tree), kind, via, object is not null from tacho.blocking(at => now()) order by 1, 2")" \
	"0 (lost) lost  f
1 advised session  t
1 alter session  t
1 paid session  t
1 reader session  t" "nobody is seen who holds it, nor ahead in the queue"
psql -c "drop function tacho._conflict" -c "alter function tacho._conflict_whole rename to _conflict"
release() { psql -c "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()" >/dev/null; }
release
psql -c "rollback prepared 'paid 4711'"
await 0 "$waiting"

# a table of tacho is locked while a tick is being added: that tick fails, and says why
hold lock "begin; lock table tacho.session in access exclusive mode; select 'locked';"
for ((i = 0; i < 2000; i++)); do ! grep -q locked lock.out || break; sleep 0.05; done
await failed "select tacho.take_sample()"
same "$(psql -c "select status, reason from tacho.hot order by start_ms desc limit 1")" "3|canceling statement due to lock timeout" "its reason"
release
await 0 "select count(*) from pg_locks where relation = 'tacho.session'::regclass and mode = 'AccessExclusiveLock'"
await ok "select replace(tacho.take_sample(), 'late', 'ok')"
