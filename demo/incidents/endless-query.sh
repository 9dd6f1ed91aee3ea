# shellcheck shell=bash disable=SC2154
# a report joins all orders to each other without a condition, and never ends

trouble() {
	PGOPTIONS="-c statement_timeout=$((length + 5))s" sql "sales report" \
		"select count(*) from orders as a, orders as b where a.note < b.note" 2>/dev/null &
	sleep "$length"
}
