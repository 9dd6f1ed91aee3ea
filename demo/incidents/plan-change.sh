# shellcheck shell=bash disable=SC2154
# a deployment drops the index that the order history reads

trouble() {
	sql deployment "drop index orders_customer"
	sleep "$length"
}

after() {
	sql deployment "create index concurrently orders_customer on orders (customer, ordered_at)"
}
