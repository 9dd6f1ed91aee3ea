# shellcheck shell=bash disable=SC2154
# three reports sort all orders in 1 MB of memory, and write the rest to temporary files

trouble() {
	PGOPTIONS='-c work_mem=1MB' bench "month end" "$length" -c 3 -f "$load/ranking.sql"
	sleep "$length"
}
