# shellcheck shell=bash disable=SC2154
# after a release without its connection pool, 200 clients connect for each query

trouble() {
	bench "mobile app" "$length" -C -c 200 -j 4 -f "$load/lookup.sql"
	sleep "$length"
}
