# shellcheck shell=bash disable=SC2154
# a deployment adds a column behind a long report, and every reader of orders waits behind both

trouble() {
	sql "nightly report" "select count(*), max(length(note)) from orders, pg_sleep($length + 2)" >/dev/null &
	sleep 3
	sql deployment "alter table orders add column if not exists channel text" &
	bench "order page" $((length - 3)) -c 16 -R 100 -f "$load/lookup.sql"
	sleep $((length - 3))
}
