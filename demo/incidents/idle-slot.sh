# shellcheck shell=bash disable=SC2154
# a slot whose reader is gone keeps the write-ahead log, while a job rewrites the orders

before() { sql setup "select pg_create_physical_replication_slot('warehouse', true)" >/dev/null; }

trouble() {
	local end=$((SECONDS + length)) first=1
	while [ $SECONDS -lt $end ]; do
		sql "price job" "update orders set item_id = item_id where id between $first and $first + 49999"
		first=$((first + 50000))
	done
}

after() { sql setup "select pg_drop_replication_slot('warehouse')" >/dev/null; }
