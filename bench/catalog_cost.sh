#!/usr/bin/env bash
# What a reading of the catalogs of many databases costs (tacho.catalog_interval).
#
# usage: bench/catalog_cost.sh [-n DATABASES] BIN
#
# BIN is the directory of the programs of a private installation with a release build of tacho:
# tools/stage.sh makes it. The server gets DATABASES (1,000) copies of a database with two tables
# and four indexes. A session uses each of them, so that the tables count as busy. Then three
# rounds are measured: the first reads all databases, the second all again after each was used,
# the third after a tenth was used. Nothing else runs. The CPU time of the workers is the time
# of the ended children of the postmaster. Markdown on standard output.
set -euo pipefail

databases=1000
while getopts n: option; do
  case $option in
    n) databases=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
trap bench_cleanup EXIT
bin=$(realpath "$1")

main() { head -1 "$BENCH_DIR/many/postmaster.pid"; }
sampler() { pgrep -P "$(main)" -f 'tacho sampler'; }
writer() { pgrep -f "^[^ ]*tacho tape-writer.*$BENCH_DIR/many/tacho" | head -1; }
setting() { sql -c "alter system set $1" -c 'select pg_reload_conf()' postgres >/dev/null; }

# use FROM UNTIL: uses these databases, 24 in an interval of tables. Four tables and indexes of each
# do something, so system catalogs are seldom among the 100 of an interval
use() {
  local n
  for n in $(seq "$1" "$2"); do
    printf '\\connect db%s\n' "$n"
    printf 'do $$ begin for i in 1 .. 30 loop perform count(*) from orders; perform count(*) from item; perform note from orders where customer = 7; update item set qty = qty + 1 where id = i; end loop; end $$;\n'
    ((n % 24)) || printf '\\! sleep 2.2\n'
  done | sql -o /dev/null postgres
  sleep 5
}

# watch_workers: the largest private memory of a worker and the seconds from the first to the last
watch_workers() {
  perl -MTime::HiRes=time,sleep -e '
    my ($main, $peak, $first, $last, %seen) = ($ARGV[0], 0, 0, time);
    my $end = time + 20;
    while (time < $end) {
      open(my $list, "<", "/proc/$main/task/$main/children") or last;
      for my $pid (split " ", <$list> // "") {
        next if defined $seen{$pid} && !$seen{$pid};
        open(my $line, "<", "/proc/$pid/cmdline") or next;
        my $title = <$line> // "";
        $seen{$pid} = 0, next if $title !~ /tacho catalog/ && $title =~ /: /;
        next if $title !~ /tacho catalog/;
        $seen{$pid} = 1;
        open(my $status, "<", "/proc/$pid/status") or next;
        /^RssAnon:\s*(\d+)/ && $1 > $peak && ($peak = $1) while <$status>;
        $first ||= time;
        $last = time;
        $end = $last + 20;
      }
      sleep 0.0005;
    }
    printf "%d %.1f\n", $peak, $first ? $last - $first : 0' "$(main)"
}

rss() { awk '/^RssAnon/ { print $2 }' "/proc/$(sampler)/status"; }
bytes() { du -sb "$BENCH_DIR/many/tacho" | cut -f1; }

# measure TITLE: a row of a round
measure() {
  local s w e b m seen
  setting 'tacho.tables_interval = 3600000'
  sleep 30
  m=$(rss) s=$(us "$(sampler)") w=$(us "$(writer)") b=$(bytes) e=$(us_ended "$(main)")
  setting 'tacho.catalog_interval = 10000'
  read -ra seen < <(watch_workers)
  e=$(($(us_ended "$(main)") - e)) s=$(($(us "$(sampler)") - s)) w=$(($(us "$(writer)") - w)) b=$(($(bytes) - b))
  setting 'tacho.catalog_interval = 86400000'
  printf '| %s | %s | %s | %s | %s | %s | %s | %s → %s |\n' "$1" "${seen[1]}" "$((e / 1000))" \
    "$((s / 1000))" "$((w / 1000))" "$((b / 1024))" "${seen[0]}" "$m" "$(rss)"
  setting 'tacho.tables_interval = 2000'
  sleep 5
}

chmod 755 "$BENCH_DIR"
mkdir -p "$BENCH_DIR/run"
[ "$(id -u)" != 0 ] || chown -R "$("$top/tools/as-server.sh" --user)" "$BENCH_DIR"
bench_cluster many "shared_preload_libraries = 'tacho'" 'fsync = off'
start many
sql -c 'create database pattern' postgres
sql pattern <<'SQL'
create table orders (id int primary key, customer int, at timestamptz default now(), note text);
create index orders_customer on orders (customer);
create index orders_at on orders (at);
create table item (id int primary key, qty int);
insert into orders select i, i % 50, now(), 'note ' || i from generate_series(1, 500) i;
insert into item select i, 100 from generate_series(1, 100) i;
analyze;
SQL
for n in $(seq "$databases"); do echo "create database db$n template pattern strategy file_copy;"; done | sql postgres
say "databases: $databases"
setting 'tacho.tables_interval = 2000'
setting 'tacho.catalog_interval = 86400000'
sleep 5
echo "# What readings of catalogs cost"
echo
environment
echo "- load average $(cut -d' ' -f1-3 /proc/loadavg) at the begin"
echo "- command: \`bench/catalog_cost.sh -n $databases BIN\`"
echo
echo '| Round | seconds | CPU of workers, ms | CPU of sampler, ms | CPU of writer, ms | log, KiB | largest worker, KiB | sampler, KiB |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
use 1 "$databases"
measure 'all databases'
use 1 "$databases"
measure 'all databases again'
use 1 $((databases / 10))
measure 'a tenth of them'
stop many
"$bin/tacho" indexes-history --tape "$BENCH_DIR/many/tacho" --since 3h -n 1000000 --json |
  perl -ne '$n++ if /"key"/; $seen{$1} = 1 if /"database": "(db\d+)"/; END { printf "\n%d databases and %d indexes in the history\n", scalar(keys %seen), $n }'
"$bin/tacho" inspect --sizes "$BENCH_DIR/many/tacho" >"${SIZES:-/dev/null}"
