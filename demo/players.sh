# shellcheck shell=bash
#
# Clients of the demo's load; demo/load.sh and demo/incidents.sh source this file. They
# set "bin", the directory of psql and pgbench, and "dsn". Clients that still run when
# the script ends are stopped.

: "${bin:?} ${dsn:?}"
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' EXIT

# as NAME PROGRAM...: connects with this application_name
as() { PGAPPNAME=$1 "$bin/$2" "${@:3}"; }

# bench NAME SECONDS OPTION...: pgbench on its own, in the background. The end of the
# load cuts off its clients, which is no failure.
bench() { as "$1" pgbench -n -T "$2" "${@:3}" "$dsn" >/dev/null 2>&1 & }

# hold NAME SECONDS STATEMENT: runs it in a transaction that then stays idle
hold() {
	{
		echo "begin; $3"
		sleep "$2"
		echo "commit;"
	} | as "$1" psql -XqAt "$dsn" >/dev/null &
}
