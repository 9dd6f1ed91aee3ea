# shellcheck shell=bash disable=SC2154
# four exports read orders in random order, and the host has no memory left to cache files in

# forget SECONDS: makes the kernel drop cached pages of the orders, again and again
forget() {
	local end=$((SECONDS + $1)) data files file
	data=$(value "show data_directory")
	files=$(value "select pg_relation_filepath(oid) from pg_class
		where relname in ('orders', 'orders_pkey', 'orders_customer')")
	while [ $SECONDS -lt $end ]; do
		for file in $files; do
			dd if="$data/$file" iflag=nocache count=0 status=none
		done
		sleep 0.2
	done
}

trouble() {
	bench export "$length" -c 4 -f "$load/export.sql"
	forget "$length"
}
