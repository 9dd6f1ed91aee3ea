#!/usr/bin/env bash
# Resources of tacho record with many servers at once.
#
# usage: bench/recorder.sh [-n SERVERS] [-c CLUSTERS] [-t SECONDS] [-i MS]
#
# SERVERS (200) are simulated by as many databases in CLUSTERS (4) clusters
# without tacho. Each is recorded as a server, with a connection, a thread
# and a directory of its own, as a role with pg_monitor, every MS (1000). So
# each recorder sees the sessions of its whole cluster: a few that work, and
# the other recorders. After a minute it measures SECONDS (600): CPU time,
# memory and descriptors of the recorder from /proc, ticks from its
# /metrics, CPU time of the backends that answer it. Markdown on standard
# output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"

servers=200 clusters=4 seconds=600 interval=1000
while getopts n:c:t:i: option; do
  case $option in
    n) servers=$OPTARG ;;
    c) clusters=$OPTARG ;;
    t) seconds=$OPTARG ;;
    i) interval=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
bin=$("${PG_CONFIG:-pg_config}" --bindir)
bench_recorder
listen=127.0.0.1:$((port + 100))
each=$(((servers + clusters - 1) / clusters))
loads=()

end() {
  local c
  [ -z "${pid:-}" ] || kill "$pid" 2>/dev/null || true
  [ ${#loads[@]} = 0 ] || kill "${loads[@]}" 2>/dev/null || true
  wait
  for ((c = 0; c < clusters; c++)); do
    [ ! -e "$BENCH_DIR/c$c/postmaster.pid" ] || as_server "$bin/pg_ctl" -s -D "$BENCH_DIR/c$c" -m immediate stop || true
  done
  rm -rf "$BENCH_DIR"
}
trap end EXIT

psql_of() { as_server "$bin/psql" -XAtq -h "$BENCH_DIR" -p $((port + $1)) -U postgres -d postgres; }

start_cluster() { # its databases are copies of template0, and nobody writes
  local c=$1 d dir=$BENCH_DIR/c$1
  as_server "$bin/initdb" -D "$dir" -U postgres -A trust --no-sync >/dev/null
  printf '%s\n' "port = $((port + c))" "unix_socket_directories = '$BENCH_DIR'" "listen_addresses = ''" \
    "max_connections = $((each + 50))" 'fsync = off' 'autovacuum = off' >>"$dir/postgresql.conf"
  as_server "$bin/pg_ctl" -s -w -D "$dir" -l "$dir/log" start
  {
    echo 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher;'
    for ((d = 0; d < each; d++)); do echo "CREATE DATABASE s$d TEMPLATE template0;"; done
  } | psql_of "$c"
  printf 'SELECT pg_sleep(random());\n' >"$BENCH_DIR/load.sql"
  as_server "$bin/pgbench" -n -h "$BENCH_DIR" -p $((port + c)) -U postgres -f "$BENCH_DIR/load.sql" -c 10 -T 36000 postgres >/dev/null 2>&1 &
  loads+=($!)
}

write_file() {
  local n
  printf 'root = "tapes"\nlisten = "%s"\n[defaults]\ninterval = %s\n' "$listen" "$interval"
  for ((n = 0; n < servers; n++)); do
    printf '[[server]]\nname = "s%s"\nconninfo = "host=%s port=%s dbname=s%s user=watcher"\n' \
      "$n" "$BENCH_DIR" $((port + n % clusters)) $((n / clusters))
  done
}

# user and system, in ticks of 10 ms; 0 for processes that are gone
cpu() { local p; for p; do sed 's/.*) //' "/proc/$p/stat" 2>/dev/null || true; done | awk '{ n += $12 + $13 } END { print n + 0 }'; }
backends() {
  local c
  for ((c = 0; c < clusters; c++)); do echo "SELECT pid FROM pg_stat_activity WHERE usename = 'watcher'" | psql_of "$c"; done
}
metric() { # the sum over servers
  exec 3<>"/dev/tcp/${listen%:*}/${listen#*:}"
  printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  awk -v name="tacho_recorder_$1" 'index($1, name "{") == 1 || $1 == name { n += $2 } END { printf "%.3f\n", n + 0 }' <&3
  exec 3<&-
}
field() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$pid/$2"; }
of() { awk "BEGIN { printf \"$1\", $2 }"; }

chmod 755 "$BENCH_DIR"
[ "$(id -u)" != 0 ] || chown "$("$top/tools/as-server.sh" --user)" "$BENCH_DIR"
for ((c = 0; c < clusters; c++)); do say "cluster $c"; start_cluster "$c"; done
write_file >"$BENCH_DIR/record.toml"
"$recorder" --config "$BENCH_DIR/record.toml" 2>"$BENCH_DIR/log" &
pid=$!
say "recording"
until [ "$(metric connected 2>/dev/null)" = "$servers.000" ]; do
	kill -0 "$pid" || { cat "$BENCH_DIR/log" >&2; exit 1; }
	sleep 1
done
sleep 60
watchers=$(backends)
mapfile -t watchers <<<"$watchers"
names=(ticks_total late_ticks_total missed_slots_total lost_frames_total tick_wait_seconds_total)
before=() grown=()
for name in "${names[@]}"; do before+=("$(metric "$name")"); done
began=$(date +%s.%N) own=$(cpu "$pid") theirs=$(cpu "${watchers[@]}") written=$(field write_bytes io)
sleep "$seconds"
elapsed=$(of %.1f "$(date +%s.%N) - $began")
own=$(($(cpu "$pid") - own)) theirs=$(($(cpu "${watchers[@]}") - theirs)) written=$(($(field write_bytes io) - written))
for n in "${!names[@]}"; do grown+=("$(of %.3f "$(metric "${names[n]}") - ${before[n]}")"); done

cat <<END
| What | Value |
|---|--:|
| servers, clusters, interval | $servers, $clusters, $interval ms |
| measured | $elapsed s |
| ticks | $(of %.0f "${grown[0]}") |
| late ticks | $(of '%.2f %%' "100 * ${grown[1]} / ${grown[0]}") |
| slots without a tick | $(of '%.2f %%' "100 * ${grown[2]} / (${grown[0]} + ${grown[2]})") |
| frames lost | $(of %.0f "${grown[3]}") |
| time until an answer, mean | $(of '%.2f ms' "1000 * ${grown[4]} / ${grown[0]}") |
| CPU of the recorder | $(of '%.1f %% of a core' "$own / $elapsed") |
| … a tick | $(of '%.0f µs' "$own * 10000 / ${grown[0]}") |
| CPU of the backends that answer, a tick | $(of '%.0f µs' "$theirs * 10000 / ${grown[0]}") |
| memory (VmRSS), peak (VmHWM) | $(of '%.0f' "$(field VmRSS status) / 1024"), $(of '%.0f MiB' "$(field VmHWM status) / 1024") |
| … that it counts itself | $(of '%.0f MiB' "$(metric memory_bytes) / 1048576") |
| threads | $(field Threads status) |
| open files | $(find "/proc/$pid/fd" -mindepth 1 | wc -l) |
| bytes written | $(of '%.1f KiB/s' "$written / 1024 / $elapsed") |
END
