# shellcheck shell=bash disable=SC2154
# a load writes more log than max_wal_size allows, and forces one checkpoint after the other

before() {
	set_to max_wal_size 64MB
	sql setup "create table if not exists import_line (id bigint, line text)"
}

trouble() {
	local end=$((SECONDS + length))
	while [ $SECONDS -lt $end ]; do
		seq -f '%.0f	a line of the file of a supplier, and what else it says of its article' 300000 |
			sql "supplier load" "copy import_line from stdin"
	done
}

after() {
	reset max_wal_size
	sql setup "truncate import_line"
}
