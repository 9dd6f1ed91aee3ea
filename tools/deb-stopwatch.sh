#!/usr/bin/env bash
# usage: tools/deb-stopwatch.sh SUITE MAJOR, in a root of tools/test-deb.sh
#
# A person who has the packages follows README.md to the letter, on a server under load
# that preloads pg_stat_statements. Prints each command with its time, and the sum; it
# fails above 60 s. The last command is given again until it shows that load.
set -euo pipefail

suite=$1 major=$2 total=0
cd /src
finish() {
	touch /tmp/loaded
	pg_dropcluster --stop "$major" main
}
now() { date +%s.%N; }
add() { awk "BEGIN { printf \"%.1f\", $1 }"; }

# the block of README.md, from the line that installs on, with this suite and this major
commands=$(awk '/^```/ { if (found) exit } /^apt install/ { found = 1 } found' README.md |
	sed "s,deb/bookworm/,deb/$suite/,g; s/postgresql-15-/postgresql-$major-/; s/\\b15 main\\b/$major main/")
[ -n "$commands" ] || { echo 'README.md installs no package'; exit 1; }

rm -f /tmp/loaded
[ -e "/etc/postgresql/$major/main" ] || pg_createcluster "$major" main >/dev/null
trap finish EXIT
pg_conftool "$major" main set shared_preload_libraries pg_stat_statements
pg_ctlcluster "$major" main start
su postgres -c "/usr/lib/postgresql/$major/bin/pgbench -q -i -s 1" >/dev/null 2>&1
# pgbench ends with the restart of the server and is started again, like an application
while [ ! -e /tmp/loaded ]; do
	su postgres -c "/usr/lib/postgresql/$major/bin/pgbench -n -c 8 -T 600" >/dev/null 2>&1 || sleep 0.2
done &

until su postgres -c 'psql -XAtqc "select count(*) from pg_stat_activity where application_name = '\''pgbench'\''"' | grep -q 8; do sleep 0.2; done
while read -r line; do
	begin=$(now)
	bash -euc "$line" >/tmp/said 2>&1 </dev/null || { cat /tmp/said; exit 1; }
	case $line in *'tacho chart'*)
		until grep -q '█' <(tail -n +2 /tmp/said); do bash -euc "$line" >/tmp/said 2>&1; done
	esac
	took=$(add "$(now) - $begin")
	total=$(add "$total + $took")
	echo "$took s  \$ $line"
done <<<"$commands"
echo "$total s  in all"
cat /tmp/said
case $(tail -n +2 /tmp/said) in *' █'*) echo "ok - the chart shows the load" ;; *) exit 1 ;; esac
awk "BEGIN { exit !($total <= 60) }" || { echo "not ok - more than 60 s"; exit 1; }
