#!/usr/bin/env bash
# usage: tools/deb-lives.sh MAJOR, in a root of tools/test-deb.sh
#
# A server with a history, while packages come and go: an upgrade to /tmp/newer under a
# load whose executions are counted by a table, a removal and a purge.
set -euo pipefail

version=$1
data=/var/lib/postgresql/$version/main
say() { su postgres -c "psql -XAtq -v ON_ERROR_STOP=1 -c \"$1\""; }
ticks() { say "select coalesce(sum(ticks_observed), 0) from tacho.aas(since => now() - interval '1 hour')"; }
ledger() { say 'select sum(n) from ledger'; }
# executions in the history, by all entries of the statement
counted() { say "select coalesce(sum(calls), 0) from tacho.statements_history(n => null) where query_text like 'update ledger%'"; }
postmaster() { head -n 1 "$data/postmaster.pid"; }
no() { echo "not ok - $*"; exit 1; }
finish() { pg_dropcluster --stop "$version" main 2>/dev/null || true; }
trap finish EXIT

[ -e "/etc/postgresql/$version/main" ] || pg_createcluster "$version" main >/dev/null
pg_conftool "$version" main set shared_preload_libraries 'pg_stat_statements, tacho'
pg_conftool "$version" main set tacho.statements_interval 1s
pg_ctlcluster "$version" main start
say 'create extension if not exists tacho'
until [ "$(ticks)" -gt 3 ]; do sleep 0.5; done

say 'create table ledger as select id, 0 as n from generate_series(1, 4) id'
# shellcheck disable=SC2016 # a variable of pgbench
echo 'update ledger set n = n + 1 where id = :client_id + 1' >/tmp/load.sql
before=$(postmaster)
su postgres -c "/usr/lib/postgresql/$version/bin/pgbench -n -c 4 -R 400 -t 4000 -f /tmp/load.sql postgres" >/tmp/load 2>&1 &
load=$!
until [ "$(ledger)" -gt 500 ]; do sleep 0.2; done
dpkg -i /tmp/newer/*.deb >/tmp/upgrade 2>&1 || { cat /tmp/upgrade; exit 1; }
kill -0 $load || no 'the load ended before the upgrade'
[ "$(postmaster)" = "$before" ] || no 'an upgrade restarted the server'
grep -q "pg_ctlcluster $version main restart" /tmp/upgrade || { cat /tmp/upgrade; exit 1; }
echo 'ok - an upgrade restarts no server, and says which one runs the old library'
upgraded=$(ledger)
wait $load || { cat /tmp/load; exit 1; }
[ "$(ledger)" = 16000 ] || no "the table counted $(ledger) executions"
until [ "$(counted)" -ge 16000 ]; do sleep 0.5; done
[ "$(counted)" = 16000 ] || no "the history has $(counted) executions instead of 16000"
echo "ok - the history has all 16000 executions, $upgraded until the upgrade was done and the others with the old library and the new program"
pg_ctlcluster "$version" main restart
[ "$(postmaster)" != "$before" ] || no 'no restart'
say 'alter extension tacho update'
[ "$(counted)" = 16000 ] || no "after the restart the history has $(counted) executions"
ticks=$(ticks)
until [ "$(ticks)" -gt "$((ticks + 2))" ]; do sleep 0.5; done
echo 'ok - ... also after the restart with the new library, which records on'

apt-get -qq -y purge "postgresql-$version-tacho" >/tmp/remove 2>&1 || { cat /tmp/remove; exit 1; }
grep -q "cluster $version/main preloads tacho and will not start" /tmp/remove || { cat /tmp/remove; exit 1; }
line="pg_conftool $version main set shared_preload_libraries 'pg_stat_statements'"
grep -qF "$line" /tmp/remove || { cat /tmp/remove; exit 1; }
echo 'ok - a removal warns of the next start'
say 'select 1' >/dev/null
echo 'ok - the server goes on'
# a history of tacho-record
install -D -o tacho -m 600 /dev/null /var/lib/tacho/main/history
apt-get -qq -y purge tacho >/tmp/purge 2>&1 || { cat /tmp/purge; exit 1; }
for each in "$data/tacho" /var/lib/tacho/main; do [ -n "$(find "$each" -type f)" ] || no "a purge removed $each"; done
echo 'ok - a purge leaves the history'
! pg_ctlcluster "$version" main restart 2>/dev/null || no 'a server starts without a library that it preloads'
bash -c "$line"
pg_ctlcluster "$version" main start
say 'select 1' >/dev/null
echo 'ok - the line of the warning lets the server start without the package'
