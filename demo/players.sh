# shellcheck shell=bash
#
# Who takes part in the demo's load; demo/load.sh and demo/incidents.sh source
# this. They set "bin", the directory of psql and pgbench, and "dsn". Whoever
# still plays when the script ends is stopped.

: "${bin:?} ${dsn:?}"
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' EXIT

# as NAME PROGRAM...: connects with this application_name
as() { PGAPPNAME=$1 "$bin/$2" "${@:3}"; }

# bench NAME SECONDS OPTION...: pgbench on its own, in the background. Its
# clients are cut off at the end of the load, which is no failure.
bench() { as "$1" pgbench -n -T "$2" "${@:3}" "$dsn" >/dev/null 2>&1 & }

# hold NAME SECONDS STATEMENT: runs it in a transaction and then sits there
hold() {
	{
		echo "begin; $3"
		sleep "$2"
		echo "commit;"
	} | as "$1" psql -XqAt "$dsn" >/dev/null &
}
