# shellcheck shell=bash disable=SC2154
# an import locks one item and then does nothing, with 24 checkouts of this item behind it

trouble() {
	hold "stock import" $((length + 2)) "update item set qty = 1000000 where id = 7;"
	sleep 2
	bench checkout $((length - 2)) -c 24 -f "$load/checkout.sql"
	sleep $((length - 2))
}
