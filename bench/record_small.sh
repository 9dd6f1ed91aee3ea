#!/usr/bin/env bash
# Records a small server with default settings and keeps the history: about three active
# sessions, twelve statements; only the library is set.
#
# usage: bench/record_small.sh [-t SECONDS] DIR   (build first: cargo build --release -p tacho)
#
# DIR is made; an hour is recorded unless -t says otherwise. Then:
#   tacho inspect --sizes DIR
# Environment: as in bench/lib.sh
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
seconds=3600
while getopts t: option; do
	case $option in
	t) seconds=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
[ ! -e "$1" ] || { echo "error: \"$1\" is there already" >&2; exit 1; }
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
trap bench_cleanup EXIT

# load NAME CLIENTS: plays the script on standard input until the time is over.
load() {
	cat > "$BENCH_DIR/$1.sql"
	PGAPPNAME=$1 bench_pgbench -n -c "$2" -T "$seconds" -f "$BENCH_DIR/$1.sql" postgres >/dev/null &
}

bench_install
bench_cluster small "shared_preload_libraries = 'tacho'"
start small
sql -f - <<'SQL'
create table item (id int primary key, price numeric, stock int);
insert into item select i, i % 100, 1000 from generate_series(1, 50000) i;
create table orders (id bigserial primary key, item int, at timestamptz default now());
create table task (id bigserial primary key, body text);
insert into task (body) select 'task ' || i from generate_series(1, 500) i;
SQL

load shop 6 <<'SQL'
\set hot random(1, 5)
\set pause random(20, 180)
select price from item where id = :hot;
begin;
update item set stock = stock - 1 where id = :hot;
insert into orders (item) values (:hot);
\sleep :pause ms
commit;
\sleep :pause ms
SQL
load reports 1 <<'SQL'
\set pause random(500, 3000)
select price, count(*), sum(stock) from item group by price order by 2 desc;
select count(*) from orders where at > now() - interval '10 minutes';
\sleep :pause ms
SQL
load queue 2 <<'SQL'
\set pause random(100, 900)
\set work random(1, 9)
select id from task order by id limit 1 for update skip locked;
select pg_sleep(:work * 0.1);
insert into task (body) values ('again');
delete from task where id = (select min(id) from task);
select count(*) from task;
\sleep :pause ms
SQL
wait -n
wait -n
wait -n
stop small
cp -R "$BENCH_DIR/small/tacho" "$1"
