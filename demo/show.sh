#!/usr/bin/env bash
# usage: demo/show.sh DEMO-DIRECTORY DSN START STORM-START STORM-END END
#
# Shows what tacho recorded of the load: through SQL and, from the same files,
# with the tacho program. Times are seconds since 1970. Fits 80 columns.
set -euo pipefail

[ $# -eq 6 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
demo=$1 dsn=$2 start=$3 storm_start=$4 storm_end=$5 end=$6
psql=$(<"$demo/bin")/psql
load="since => to_timestamp($start), until => to_timestamp($end)"
storm="since => to_timestamp($storm_start), until => to_timestamp($storm_end)"
recording="'recording', 'reason', 'tick_interval_ms', 'tick_cost_us', 'ticks_taken', 'ticks_missed', 'rows_taken', 'frames_lost'"
bold='' plain='' color=false
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m' color=true; fi

# shellcheck source=demo/questions.sh
source "$(dirname "$0")/questions.sh"
questions

stamp() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
# for tools/screenshots.sh: the minute of load; for demo/test-live.sh: the storm in it
echo "$(stamp "$start") $(stamp "$end")" >"$demo/load"
echo "$storm_start $storm_end" >"$demo/storm"
printf '%sThe same files, read without the server:%s\n' "$bold" "$plain"
printf '.demo/tacho top wait_event --tape .demo/data/tacho \\\n    --since %s --until %s --n 3\n\n' \
	"$(stamp "$storm_start")" "$(stamp "$storm_end")"
"$demo/tacho" top wait_event --tape "$demo/data/tacho" \
	--since "$(stamp "$storm_start")" --until "$(stamp "$storm_end")" --n 3

printf '\n%sOn disk%s  %s in %s\n' "$bold" "$plain" \
	"$(du -sh "$demo/data/tacho" | cut -f1)" "$demo/data/tacho"

cat <<-END

	${bold}The cluster and the page are up, and tacho goes on recording.${plain}
	  the page, on the storm:
	  http://127.0.0.1:$(<"$demo/page.port")/?token=$(<"$demo/token")&since=$(stamp "$storm_start")&until=$(stamp "$storm_end")
	  terminal      .demo/tacho live --tape .demo/data/tacho
	  connect       psql "\$(make -s demo-dsn)"
	  look further  select * from tacho.summary();
	                select * from tacho.top('application', scope => 'all');
	                .demo/tacho --help      docs/ask.md
	  incidents     demo/incidents.sh       docs/guide/README.md
	  stop both     make demo-stop
END
