# shellcheck shell=bash disable=SC2154
# two workers update the same items in opposite order, and insert ids that are there already

before() { sql setup "create table if not exists signup (id int primary key)"; }

# worker SECONDS FIRST SECOND
worker() {
	local end=$((SECONDS + $1))
	while [ $SECONDS -lt $end ]; do
		echo "begin; update item set qty = qty - 1 where id = $2; select pg_sleep(0.05);"
		echo "update item set qty = qty - 1 where id = $3; commit;"
		echo "insert into signup values (1); insert into signup values (2);"
		sleep 0.05
	done | PGAPPNAME="queue worker" PGOPTIONS='-c deadlock_timeout=200ms' timeout "$1" \
		"$bin/psql" -Xq "$dsn" >/dev/null 2>&1 || true
}

trouble() {
	worker "$length" 11 12 &
	worker "$length" 12 11 &
	sleep "$length"
}
