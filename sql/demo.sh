#!/usr/bin/env bash
# usage: sql/demo.sh [--dsn | --stop]
#
# The demo with the SQL edition: a stock PostgreSQL (PG_CONFIG, default
# pg_config) with pg_cron when its package is installed, the load of demo/, and
# what tacho saw of it. Everything is in a directory under /var/tmp that
# .demo-sql of this repository points to. The cluster stays up.
#
#   --dsn   print its connection string
#   --stop  stop it and remove everything
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=demo/say.sh
source "$repo/demo/say.sh"
link=$repo/.demo-sql
# shellcheck source=demo/stock.sh
source "$repo/demo/stock.sh"
cd / # the server's user may not see where we are

stop() { stock_stop loop; }

create() {
	local settings=('autovacuum_naptime = 10s')
	stock_place tacho-demo-sql
	! has pg_cron || settings+=("cron.database_name = 'shop'" "cron.host = '$demo/run'")
	stock_server 'pg_stat_statements pg_cron' "${settings[@]}"
	sql -f "$repo/sql/tacho.sql"
}

# Starts recording and waits for the first tick.
record() {
	sql -c "select * from tacho.start()"
	if [[ "$(sql -At -c "select tacho._cron()")" != t ]]; then
		(while sql -c "call tacho.run_sampler()" >/dev/null 2>&1; do sleep 1; done) &
		echo $! >"$demo/loop"
	fi
	while [ "$(sql -At -c "select count(*) from tacho.hot")" = 0 ]; do sleep 0.5; done
}

show() { # START STORM-BEGIN STORM-END END
	local psql=$bin/psql dsn color=false load storm recording
	dsn=$(dsn)
	[ -z "$bold" ] || color=true
	load="since => to_timestamp($1), until => to_timestamp($4)"
	storm="since => to_timestamp($2), until => to_timestamp($3)"
	recording="'recording', 'permission', 'pg_cron', 'sample_interval', 'last_tick', 'coverage_last_hour_pct', 'bytes'"
	# shellcheck source=demo/questions.sh
	source "$repo/demo/questions.sh"
	questions
	ask "Who held them up?  tacho.blocking()" \
		"select tree, application, state, coalesce(relation, object) as waited_for, mode, blocked_seconds, waiters from tacho.blocking($storm, n => 3)"
	ask "What did each statement cost?  tacho.statements_history()" \
		"select left(regexp_replace(query_text, '\s+', ' ', 'g'), 44) as query_text, calls, total_exec_ms
		   from tacho.statements_history(since => to_timestamp($1), n => 5)"
}

case ${1:-} in
--stop)
	stop
	exit
	;;
--dsn)
	[ -e "$link" ] || die "there is no demo; make demo-sql starts one"
	demo=$(realpath "$link")
	dsn
	echo
	exit
	;;
'') ;;
*)
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2
	exit 2
	;;
esac

stop
say "Starting a stock PostgreSQL with a shop of 230 MB"
create
record
say "A minute of load: pgbench, reports, a forgotten transaction, a lock storm"
mapfile -t moments < <("$repo/demo/load.sh" "$bin" "$(dsn)")
[ ${#moments[@]} = 4 ] || die "the load has stopped early"
sql -c "select * from tacho.maintain()" >/dev/null
show "${moments[@]}"
printf 'The cluster stays up:  psql "%s"\nStop and remove it:    sql/demo.sh --stop\n' "$(dsn)"
