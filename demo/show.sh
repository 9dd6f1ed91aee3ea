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
bold='' plain='' color=false
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m' color=true; fi

ask() { # HEADING QUERY [PSQL-OPTION]...
	printf '%s%s%s\n' "$bold" "$1" "$plain"
	"$psql" -Xq -v ON_ERROR_STOP=1 -P footer=off -P null=- -P format=wrapped \
		-P columns=79 -P pager=off "${@:3}" -c "$2" "$dsn"
}

echo
ask "Is it recording?  tacho.status()" \
	"select metric, value from tacho.status()
	  where value is not null
	    and metric in ('recording', 'reason', 'tick_interval_ms', 'tick_cost_us',
	                   'ticks_taken', 'ticks_missed', 'rows_taken', 'frames_lost')"

ask "How busy was it lately?  tacho.periods(), in average active sessions" \
	"select period, avg_aas, peak_aas, peak_sessions, ticks_observed, coverage_pct
	   from tacho.periods()
	  where period in ('1m', '5m', '1h')"

ask "The minute as a picture  tacho.chart()" \
	"select concat_ws('  ', coalesce(to_char(bucket_start, 'HH24:MI:SS'), '        '),
	        to_char(aas, '990.9'), chart)
	   from tacho.chart($load, bucket => '2 seconds', color => $color)" \
	-A -t -P format=unaligned
echo

ask "What did sessions wait for?  tacho.top('wait_event')" \
	"select key, avg_aas, pct, peak_sessions from tacho.top('wait_event', $load, n => 8)"

ask "Which queries made the storm?  tacho.top('query_id', since => …, until => …)" \
	"select key as query_id, avg_aas,
	        left(regexp_replace(query_text, '\s+', ' ', 'g'), 44) as query_text
	   from tacho.top('query_id', $storm, n => 4)"

ask "And who sat in an open transaction meanwhile?  state => 'idle in transaction'" \
	"select key as application, avg_aas, peak_sessions
	   from tacho.top('application', $storm, n => 4,
	                  scope => 'foreground', state => 'idle in transaction')"

stamp() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
printf '%sThe same files, read without the server:%s\n' "$bold" "$plain"
printf '.demo/tacho top wait_event --tape .demo/data/tacho \\\n    --since %s --until %s --n 3\n\n' \
	"$(stamp "$storm_start")" "$(stamp "$storm_end")"
"$demo/tacho" top wait_event --tape "$demo/data/tacho" \
	--since "$(stamp "$storm_start")" --until "$(stamp "$storm_end")" --n 3

printf '\n%sOn disk%s  %s in %s\n' "$bold" "$plain" \
	"$(du -sh "$demo/data/tacho" | cut -f1)" "$demo/data/tacho"

cat <<-END

	${bold}The cluster is up, and tacho goes on recording.${plain}
	  connect       psql "\$(make -s demo-dsn)"
	  look further  select * from tacho.summary();
	                select * from tacho.top('application', scope => 'all');
	                .demo/tacho --help      README.md, "Ask it"
	  incidents     demo/incidents.sh       docs/guide/README.md
	  stop          make demo-stop
END
