# shellcheck shell=bash
# Load and table of sizes of changes_cost.sh; sourced after lib.sh, not run.

: "${seconds:?}" "${seed:?}" "${rate:?}" "${databases:?}"
players=()

schema() {
  local n
  for n in 1 2 3 4 5 6 7 8; do
    cat <<SQL
create table t$n (id int primary key, c0 int, c1 int, c2 int, c3 int, c4 int, c5 int, c6 int,
  c7 int, c8 int, c9 int, at timestamptz default now(), note text);
insert into t$n select i, i % 7, i % 11, i % 50, i % 100, i % 500, i % 1000, i % 13, i % 17, i, 0,
  now(), repeat('x', 40) from generate_series(1, 10000) i;
create index t${n}_c4 on t$n (c4);
create index t${n}_c5 on t$n (c5);
create index t${n}_at on t$n (at);
SQL
  done
  cat <<'SQL'
create table counter (id int primary key, n bigint not null);
insert into counter values (1, 0), (2, 0);
create table task (id bigserial primary key, body text);
insert into task (body) select 'task ' || i from generate_series(1, 500) i;
analyze;
SQL
}

# shape NUMBER: one of 100 short statements
shape() {
  local a=$(($1 % 10)) b=$(($1 / 10)) t=$(($1 % 8 + 1)) u=$((($1 + 3) % 8 + 1))
  printf '\\set id random(1, 10000)\n\\set few random(1, 400)\n'
  case $((($1 * 7 + b) % 10)) in
    0 | 1) echo "select c$a, c$b, note from t$t where id = :id" ;;
    2) echo "select c$a, count(*), sum(c$b) from t$t where c5 = :few group by c$a" ;;
    3) echo "update t$t set c9 = c9 + 1 where id = :id and c$a >= 0 and c$b >= 0" ;;
    4) echo "insert into t$t (id, c4, c5, note) select 10000 + nextval('fresh'), c$a, c$b, 'n' from t$u where id = :id" ;;
    5) echo "select x.id, y.c$a, y.c$b from t$t x join t$u y on y.id = x.c8 where x.c5 = :few" ;;
    6) echo "select id, c$a, at from t$t where c4 = :few and c$b >= 0 order by at desc limit 20" ;;
    7) echo "delete from t$t where id = 10000 + :few and c$a >= 0 and c$b >= 0" ;;
    8) echo "select c$b from t$t where id in (:id, :few, :id + 1, :few + 1) and c$a >= 0" ;;
    9) echo "select c$a, c$b from t$t x where c5 = :few and exists (select from t$u y where y.id = x.id and y.c$b >= 0)" ;;
  esac
  echo "/*action='a$1',application='web',controller='c$b',route='%2Fc$b%2F$a'*/;"
}

# scripts: all scripts of the load, in $BENCH_DIR/load
scripts() (
  local n
  mkdir -p "$BENCH_DIR/load"
  cd "$BENCH_DIR/load" || exit
  for n in $(seq 0 99); do shape "$n" >"shape$n.sql"; done
  cat >counter.sql <<'SQL'
\set row random(1, 2)
\set pause random(20, 150)
begin;
update counter set n = n + 1 where id = :row /*controller='counter',job='count'*/;
\sleep :pause ms
commit;
\sleep :pause ms
SQL
  cat >queue.sql <<'SQL'
\set work random(1, 9)
\set pause random(100, 900)
select id from task order by id limit 1 for update skip locked /*job='queue'*/;
select pg_sleep(:work * 0.1);
insert into task (body) values ('again');
delete from task where id = (select min(id) from task);
\sleep :pause ms
SQL
  cat >report.sql <<'SQL'
\set pause random(500, 3000)
select c2, count(*), sum(c8), max(note) from t1 group by c2 order by 2 desc /*job='report',release='7'*/;
select x.c3, count(*) from t2 x join t3 y on x.c4 = y.c4 group by x.c3;
\sleep :pause ms
select count(*) from t4 where at > now() - interval '10 minutes';
SQL
  cat >temporary.sql <<'SQL'
create temp table scratch (id int, n int);
insert into scratch select id, c4 from t5 where c5 < 20;
select count(*) from scratch;
drop table scratch;
SQL
  echo 'select count(*) from t6 where c5 = 5;' >connect.sql
  cat >change.sql <<'SQL'
create index t7_c6 on t7 (c6);
\sleep 20 s
alter table t7 add column extra int;
\sleep 10 s
drop index t7_c6;
alter table t7 drop column extra;
\sleep 30 s
SQL
  cat >batch.sql <<'SQL'
\set from random(1, 5000)
begin;
update t8 set c9 = c9 + 1 where id between :from and :from + 5000;
\sleep 2 s
commit;
\sleep 58 s
SQL
)

# play NAME CLIENTS DATABASE ARGUMENT…: these clients until the time is over
play() {
  PGAPPNAME=$1 bench_pgbench -n -j 1 -c "$2" -T "$seconds" --random-seed="$seed" "${@:4}" "$3" >/dev/null 2>>"$BENCH_DIR/players.log" &
  players+=($!)
}

fail() {
  while sleep 15; do PGAPPNAME=cron sql -c 'select c0 / c9 from t1' "$1" >/dev/null 2>&1 || true; done &
}

# few statements come often, most seldom
weights() {
  local n
  for n in $(seq 0 99); do printf -- '-f %s@%s ' "$BENCH_DIR/load/shape$n.sql" $((400 / (n + 4))); done
}

load() {
  local database
  for database in $databases; do
    # shellcheck disable=SC2046 # the words are arguments
    play web 9 "$database" -R 25 $(weights)
    play report 1 "$database" -f "$BENCH_DIR/load/report.sql"
    play queue 2 "$database" -f "$BENCH_DIR/load/queue.sql"
    play temporary 1 "$database" -R "$rate" -f "$BENCH_DIR/load/temporary.sql"
    play connect 1 "$database" -C -R 1 -f "$BENCH_DIR/load/connect.sql"
  done
  play counter 6 shop -f "$BENCH_DIR/load/counter.sql"
  play change 1 billing -f "$BENCH_DIR/load/change.sql"
  play batch 1 people -f "$BENCH_DIR/load/batch.sql"
  fail people
}

# bytes: a row for each table of the history, the largest difference first
bytes() {
  # "NUMBER PERCENT  NAME"; columns have two more blanks before the name
  awk '!/^ *[0-9]+ +[0-9.]+  [^ ]/ && !/sum of/ { next }
    { name = ($0 ~ /sum of/) ? "all" : $3; seen[name] = 1; bytes[FILENAME, name] = $1 }
    END { for (name in seen) { a = bytes[ARGV[1], name]; b = bytes[ARGV[2], name]
      printf "%d | %s | %d | %d | %+d |\n", (b > a ? b - a : a - b), name, a, b, b - a } }' \
    "$BENCH_DIR/before.sizes" "$BENCH_DIR/now.sizes" | sort -rn | sed 's/^[0-9]* //'
}
