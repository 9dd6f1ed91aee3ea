#!/usr/bin/env bash
# What the records of an earlier commit and of this one cost under the same load: bytes of the
# history by table, CPU time of the processes of tacho, CPU time of a transaction.
#
# usage: bench/changes_cost.sh [-t SECONDS] [-s SEED] [-n RATE] BEFORE NOW
#
# BEFORE and NOW are the directories of the programs of two private installations. Make each with
# tools/stage.sh in a checkout of its commit, with a release build of its tacho program. Two
# servers run at the same time with default settings; only the library, ports and sockets are set.
# Each has 50 clients with fixed rates and the same seed for SECONDS (1800):
#   - three databases with eight tables each, 100 short statements each with tags in comments
#   - reports, a queue, two rows that six clients update, new connections
#   - RATE (0.02) temporary tables a second in each database. The two statements that use one
#     have new query identifiers each time
#   - a statement that fails every 15 s
#   - an index and a column that come and go each minute, an update of 5,000 rows each minute
#
# The CPU time is read from the clock of each process. Both servers are started again, which seals
# the logs. Markdown on standard output. BENCH_DIR is kept; SIDE.sizes in it has sizes by column.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
seconds=1800 seed=1 rate=0.02
while getopts t:s:n: option; do
  case $option in
    t) seconds=$OPTARG ;;
    s) seed=$OPTARG ;;
    n) rate=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -eq 2 ] || usage
declare -A bins=([before]=$(realpath "$1") [now]=$(realpath "$2"))
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
declare -A ports=([before]="$port" [now]="$((port + 1))")
databases='shop billing people'
# shellcheck source=bench/changes_cost.functions.sh
source "$here/changes_cost.functions.sh"

# on SIDE COMMAND…: with the installation and the port of this side
on() { bin=${bins[$1]} port=${ports[$1]} "${@:2}"; }

finish() {
  jobs -p | xargs -r kill 2>/dev/null || true
  on before stop before 2>/dev/null || true
  on now stop now 2>/dev/null || true
}
trap finish EXIT

make_server() {
  local side=$1 database
  as_server "$bin/initdb" -D "$BENCH_DIR/$side" -A trust -U postgres -N --locale=C >/dev/null
  printf '%s\n' "shared_preload_libraries = 'tacho'" "port = $port" "listen_addresses = ''" \
    "unix_socket_directories = '$BENCH_DIR/run'" >>"$BENCH_DIR/$side/postgresql.conf"
  start "$side"
  for database in $databases; do
    sql -c "create database $database" postgres
    { schema; echo 'create sequence fresh;'; } | sql "$database"
  done
  stop "$side"
  # the records begin with the load
  rm -rf "$BENCH_DIR/$side/tacho"
  start "$side"
}

sampler_of() { pgrep -P "$(main_of "$1")" -f 'tacho sampler'; }
saver_of() { pgrep -P "$(main_of "$1")" -f 'tacho saver'; }
# the writer and the process that started it
writer_of() { pgrep -f "tape-writer.*$BENCH_DIR/$1/tacho"; }
main_of() { head -1 "$BENCH_DIR/$1/postmaster.pid"; }
server_of() { main_of "$1"; pgrep -P "$(main_of "$1")"; }
commits() { sql -c "select sum(xact_commit) from pg_stat_database" postgres; }

# reading SIDE: µs of sampler, writer, saver, server; transactions; bytes of the history
reading() {
  local server writer
  mapfile -t server < <(server_of "$1")
  mapfile -t writer < <(writer_of "$1")
  echo "$(us "$(sampler_of "$1")") $(us "${writer[@]}") $(us "$(saver_of "$1")")" \
    "$(($(us "${server[@]}") + $(us_ended "${server[0]}"))) $(commits) $(du -sb "$BENCH_DIR/$1/tacho" | cut -f1)"
}

note() { printf '%s\n' "before $1 $(on before reading before)" "now $1 $(on now reading now)" >>"$BENCH_DIR/readings"; }

# difference SIDE COLUMN FROM UNTIL: of two notes
difference() {
  awk -v side="$1" -v c="$2" -v a="$3" -v b="$4" '$1 == side && $2 == a { x = $c } $1 == side && $2 == b { y = $c }
    END { printf "%d", y - x }' "$BENCH_DIR/readings"
}
row() { # TITLE BEFORE NOW
  awk -v t="$1" -v a="$2" -v b="$3" 'BEGIN { printf "| %s | %s | %s | %s |\n", t, a, b, (a > 0 ? sprintf("%+.1f %%", (b / a - 1) * 100) : "–") }'
}

# report FROM UNTIL: rows of the time between two notes
report() {
  local side name
  local -A v
  for side in before now; do
    for name in 3.sampler 4.writer 5.saver; do v[$side.${name#*.}]=$(difference "$side" "${name%.*}" "$@"); done
    v[$side.all]=$((${v[$side.sampler]} + ${v[$side.writer]} + ${v[$side.saver]}))
    v[$side.transactions]=$(difference "$side" 7 "$@")
    # the writer is no process of the postmaster
    v[$side.rest]=$((($(difference "$side" 6 "$@") - v[$side.sampler] - v[$side.saver]) / v[$side.transactions]))
  done
  for name in sampler writer saver all; do row "$name, ms" "$((${v[before.$name]} / 1000))" "$((${v[now.$name]} / 1000))"; done
  row 'rest of the server, µs a transaction' "${v[before.rest]}" "${v[now.rest]}"
  row transactions "${v[before.transactions]}" "${v[now.transactions]}"
}

sizes() {
  stop "$1"
  start "$1"
  sleep 20
  stop "$1"
  "$bin/tacho" inspect --sizes "$BENCH_DIR/$1/tacho" >"$BENCH_DIR/$1.sizes"
}

chmod 755 "$BENCH_DIR"
mkdir -p "$BENCH_DIR/run"
scripts
[ "$(id -u)" != 0 ] || chown -R "$("$top/tools/as-server.sh" --user)" "$BENCH_DIR"
say "directory: $BENCH_DIR"
for side in before now; do on "$side" make_server "$side"; done
sleep 10
note 0
begin=$SECONDS
for side in before now; do on "$side" load; done
for ((moment = 300; moment < seconds; moment += 300)); do
  sleep $((moment - SECONDS + begin))
  note "$moment"
done
sleep $((seconds - 5 - SECONDS + begin))
note end
wait "${players[@]}"
# the load must have had all its clients
! grep -m 3 -i 'aborted' "$BENCH_DIR/players.log" >&2 || exit 1
printf '# What the newer records cost\n\n'
bin=${bins[now]} environment
echo "- load average $(cut -d' ' -f1-3 /proc/loadavg) at the end"
echo "- command: \`bench/changes_cost.sh -t $seconds -s $seed -n $rate BEFORE NOW\`"
for from in 0 300; do
  printf '\n## CPU time from second %s to %s\n\n| CPU time | before | now | more |\n|---|--:|--:|--:|\n' "$from" "$seconds"
  report "$from" end
done
for side in before now; do on "$side" sizes "$side"; done
printf '\n## Bytes of the sealed history\n\n| Table | before | now | difference |\n|---|--:|--:|--:|\n'
bytes
