# questions.sh - questions of the demos to tacho through SQL, for both the extension and
# the SQL edition. The script that sources it sets these variables: psql and dsn (the
# program and the server), load and storm (windows as arguments), recording (metrics of
# status), color, bold and plain. The answers fit 80 columns.
# shellcheck shell=bash disable=SC2154

ask() { # HEADING QUERY [PSQL-OPTION]...
	printf '%s%s%s\n' "$bold" "$1" "$plain"
	"$psql" -Xq -v ON_ERROR_STOP=1 -P footer=off -P null=- -P format=wrapped \
		-P columns=79 -P pager=off "${@:3}" -c "$2" "$dsn"
}

questions() {
	echo
	ask "Is it recording?  tacho.status()" \
		"select metric, value from tacho.status()
		  where value is not null
		    and metric in ($recording)"

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
}
