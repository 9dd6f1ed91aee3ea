#!/usr/bin/env bash
# usage: tools/deb-upgrade.sh MAJOR, in a root of tools/test-deb.sh
#
# Packages of an earlier version (/older) record a server. The packages of /built take
# their place, are restarted and updated, and are purged in the end. The history is read
# after each step.
set -euo pipefail

version=$1
data=/var/lib/postgresql/$version/main
say() { su postgres -c "psql -XAtq -v ON_ERROR_STOP=1 -c \"$1\""; }
no() { echo "not ok - $*"; exit 1; }
ticks() { say "select coalesce(sum(ticks_observed), 0) from tacho.aas(since => now() - interval '1 hour')"; }
records_on() { # WHAT
	local ticks
	ticks=$(ticks)
	for _ in {1..120}; do
		[ "$(ticks)" -le "$((ticks + 2))" ] || { echo "ok - $1"; return; }
		sleep 0.5
	done
	no "$1"
}
old_samples() { say "select count(*) from tacho.samples(since => to_timestamp($since), until => to_timestamp($until), n => 1000, application => 'older')"; }
# the version of a package without what Debian adds, 0.2.0 of 0.2.0~20261130.071500.1a2b3c4d-1~deb12
packaged() { dpkg-query -W -f '${Version}' "$1" | sed 's/[-~].*//'; }
finish() { pg_dropcluster --stop "$version" main 2>/dev/null || true; }
trap finish EXIT

apt-get -qq -y install /older/*.deb >/tmp/older 2>&1 || { cat /tmp/older; exit 1; }
pg_createcluster "$version" main >/dev/null
pg_conftool "$version" main set shared_preload_libraries 'pg_stat_statements, tacho'
pg_ctlcluster "$version" main start
say 'create extension tacho'
older=$(say "select extversion from pg_extension where extname = 'tacho'")
since=$(date +%s)
su postgres -c "PGAPPNAME=older psql -XAtqc 'select pg_sleep(10)'" >/dev/null
until=$(date +%s)
records_on "version $older records"
samples=$(old_samples)
[ "$samples" -ge 9 ] || no "the history has $samples samples of a session that slept for 10 s"

before=$(head -n 1 "$data/postmaster.pid")
apt-get -qq -y install /built/tacho_*.deb "/built/postgresql-$version-tacho_"*.deb >/tmp/upgrade 2>&1 || { cat /tmp/upgrade; exit 1; }
[ "$(head -n 1 "$data/postmaster.pid")" = "$before" ] || no 'an upgrade restarted the server'
for line in "cluster $version/main runs the library of tacho" "pg_ctlcluster $version main restart" 'ALTER EXTENSION tacho UPDATE'; do
	grep -qF "$line" /tmp/upgrade || { cat /tmp/upgrade; no "the upgrade does not say \"$line\""; }
done
echo 'ok - the upgrade names the cluster, its restart and the update of the SQL objects'
newer=$(say "select default_version from pg_available_extensions where name = 'tacho'")
[ "$newer" != "$older" ] || no "both packages have SQL objects of version $newer"
pending="library $older is running, $newer is installed"
su postgres -c "tacho doctor $version/main" >/tmp/doctor 2>&1 || true
grep -q "restart pending.*$pending" /tmp/doctor || { cat /tmp/doctor; no "tacho doctor does not say \"$pending\""; }
echo "ok - tacho doctor says that a restart is pending: $pending"
records_on 'the old library records on with the new program'
[ "$(old_samples)" = "$samples" ] || no "the history has $(old_samples) samples instead of $samples"

pg_ctlcluster "$version" main restart
su postgres -c "tacho doctor $version/main" >/tmp/doctor 2>&1 || true
grep -q 'ALTER EXTENSION tacho UPDATE' /tmp/doctor || { cat /tmp/doctor; no 'tacho doctor does not say how the SQL objects are updated'; }
echo 'ok - after the restart, tacho doctor names the update of the SQL objects'
say 'alter extension tacho update'
[ "$(say "select extversion from pg_extension where extname = 'tacho'")" = "$newer" ] || no 'the SQL objects have the old version'
records_on "ALTER EXTENSION tacho UPDATE leads from $older to $newer by the scripts of the package"
[ "$(old_samples)" = "$samples" ] || no "after the update the history has $(old_samples) samples instead of $samples"
su postgres -c "tacho doctor $version/main" >/tmp/doctor 2>&1 || true
! grep -E 'restart pending|ALTER EXTENSION' /tmp/doctor || no 'tacho doctor asks for an update after the update'
echo "ok - all $samples samples of the older version are in the history"
[ "$(packaged tacho)" = "$(tacho --version | sed 's/.* //')" ] || no "package $(packaged tacho) has program $(tacho --version)"
[[ $(packaged "postgresql-$version-tacho") = "$newer".* ]] || no "package $(packaged "postgresql-$version-tacho") has SQL objects of version $newer"
echo "ok - the packages have version $(packaged tacho), as the program"

pg_ctlcluster "$version" main stop
kept() { find "$data/tacho" -type f -exec sha256sum {} + | sort; }
history=$(kept)
[ -n "$history" ] || no 'there is no history'
apt-get -qq -y purge tacho "postgresql-$version-tacho" >/tmp/purge 2>&1 || { cat /tmp/purge; exit 1; }
[ "$(kept)" = "$history" ] || no 'a purge changed the history'
echo "ok - a purge leaves all $(wc -l <<<"$history") files of the history as they are"
