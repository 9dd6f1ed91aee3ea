#!/usr/bin/env bash
# A text or name in another encoding affects no other row: characters that this database
# cannot show become replacement characters.
set -euo pipefail

psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
until_true() {
	for ((i = 0; i < 600; i++)); do
		[ "$(psql -d postgres -c "$1")" != t ] || return 0
		sleep 0.1
	done
	echo "waited in vain for: $1"
	exit 1
}
sleepers=()
sleeper() { # DATABASE APPLICATION STATEMENT
	PGAPPNAME=$2 command psql -qAtX -d "$1" -c "$3" >/dev/null 2>&1 &
	sleepers+=($!)
	until_true "select count(*) = 1 from pg_stat_activity where application_name = '$2' and wait_event = 'PgSleep'"
}

createdb -E LATIN1 --locale=C -T template0 t_latin
createdb -E SQL_ASCII --locale=C -T template0 t_ascii
createdb t_utf
name=$'t_caf\xe9'
PGDATABASE=t_ascii psql -c "create database \"$name\" encoding 'LATIN1' locale 'C' template template0" -c "create role \"$name\" login"
for db in t_latin t_utf; do psql -d $db -f sql/tacho.sql -c "update tacho.setting set enabled = true, sample_interval = '10 milliseconds'" >/dev/null; done

# how a text is shown
shown() { psql -d "$1" -c "set client_encoding = 'UTF8'" -c "select tacho._shown($2)"; }
# shellcheck disable=SC2016 # literals of SQL
bytes() { printf "convert_from('%s', 'SQL_ASCII')%s" "$1" "${2:+, '$2'}"; } # as the server has them
same "$(PGDATABASE=t_utf shown t_utf "E'größe \\\\\\\\ 日本'")" 'größe \\ 日本' "a text of this encoding"
same "$(shown t_latin "E'a\\\\\\\\b', 'UTF8'")" 'a\\b' "backslashes"

# real sessions: in a database, and as a role, whose names are LATIN1
PGUSER=$name sleeper "$name" other "select pg_sleep(3600) as plain"
sleeper t_utf utf 'select pg_sleep(3600) as "größe 日本"'
for db in t_latin t_utf; do
	same "$(psql -d $db -c "select replace(tacho.take_sample(), 'late', 'ok')")" ok "$db: a tick"
	psql -d $db -c "select tacho._pack(9223372036854775807)" >/dev/null
done
names="select database || ' ' || username from tacho.samples() where application = 'other'"
same "$(psql -d t_utf -c "$names")" $'t_caf\ufffd t_caf\ufffd' "names that are no UTF8"
same "$(psql -d t_latin -c "set client_encoding = 'UTF8'" -c "$names")" "t_café t_café" "the same names are LATIN1"
createdb t_again
pg_dump t_utf | command psql -qAtX -v ON_ERROR_STOP=1 -d t_again >/dev/null
same "$(psql -d t_again -c "$names")" $'t_caf\ufffd t_caf\ufffd' "a dump can be restored"

# texts of autovacuum, and of sessions, are in the encoding of their database
sampled() { # ENCODING HEX
	psql -d "$3" -c "set client_encoding = 'UTF8'" -c "select tacho._decoded('\\x$2', '$1')"
}
same "$(sampled LATIN1 6772f6df65 t_utf)" größe "LATIN1 in UTF8"
same "$(sampled UTF8 6772c3b6c39f6520e697a5e69cac t_latin)" "größe ??" "UTF8 in LATIN1"
same "$(sampled UTF8 61f6ff62e697 t_utf)" $'a\ufffd\ufffdb\ufffd\ufffd' "no UTF8"
same "$(sampled EUC_JP 61c6fccbdc t_utf)" "a日本" "EUC_JP in UTF8"
same "$(sampled EUC_JP 61c6fccbdc62 t_latin)" "a??b" "EUC_JP in LATIN1"

# pg_stat_statements, where one text makes all texts an error
if [[ "$TACHO_PRELOAD" == *pg_stat_statements* ]]; then
	psql -d t_latin -c "create extension pg_stat_statements" -c "select pg_stat_statements_reset()" >/dev/null
	psql -d t_utf -c 'select 1 as "日本"' >/dev/null
	same "$(psql -d t_latin -c "select count(*) from pg_stat_statements" 2>&1 | sed -n 's/.*has no equivalent.*/no equivalent/p')" "no equivalent" "an error"
	sleeper t_latin latin "select pg_sleep(3600), 'secret' as plain"
	find_texts() {
		psql -d t_latin -c "select replace(tacho.take_sample(), 'late', 'ok')" -c "select tacho._step('texts', 0)" | tail -n 1
	}
	same "$(find_texts)" 3 "texts of three queries"
	texts() { psql -d t_latin -c "set client_encoding = 'UTF8'" -c "select body from tacho.text where query_id <> 0 order by body collate \"C\"" | paste -sd'|'; }
	# shellcheck disable=SC2016 # literals of SQL
	same "$(texts)" 'select pg_sleep($1) as "größe ??"|select pg_sleep($1) as plain|select pg_sleep($1), $2 as plain' "of sessions, without constants"
	same "$(psql -d t_latin -c "select value ~ 'texts come from sessions only, since pg_stat_statements has one that cannot be shown' from tacho.status() where metric = 'failed: texts'")" t "status says why"
	psql -d t_latin -c "select pg_stat_statements_reset()" >/dev/null
	psql -d t_latin -c "select pg_sleep(0.1) as other" >/dev/null
	psql -d t_latin >/dev/null <<-END
		create table line as select now() as time, 1 as pid, queryid as query_id from pg_stat_statements where query ~ 'as other';
		select tacho.import_sessions('line');
	END
	same "$(find_texts)" 1 "after a reset"
	same "$(psql -d t_latin -c "select count(*) from tacho.status() where metric = 'failed: texts'")" 0 "nothing is wrong"
	# shellcheck disable=SC2016 # literals of SQL
	same "$(texts | tr '|' '\n' | grep other)" 'select pg_sleep($1) as other' "the text of the view"
fi
psql -c "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and application_name in ('other', 'utf', 'latin')" >/dev/null
wait "${sleepers[@]}" || true
PGDATABASE=t_ascii psql -c "drop database \"$name\"" -c "drop role \"$name\""
