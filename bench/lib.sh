# shellcheck shell=bash
# Functions of the benchmark scripts; sourced, not run.
#
# Environment
#   PG_CONFIG      installation to measure (default: pg_config in PATH)
#   TACHO_PROGRAM  program to measure (default: target/release/tacho), with
#                  tacho-bench beside it
#   BENCH_DIR      scratch directory (default: a new one under /var/tmp)
#   BENCH_BIN      programs of a private installation with tacho in it (default:
#                  one is made)
#
# As root the server runs as user postgres.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$top/target}/release/tacho}
BENCH_DIR=${BENCH_DIR:-$(mktemp -d /var/tmp/tacho-bench.XXXXXX)}
port=${BENCH_PORT:-5544}

say() { printf '%s\n' "$*" >&2; }

# command that starts servers and clients, to bind them to cores
pin=()

as_server() { HOME=$BENCH_DIR "$top/tools/as-server.sh" "${pin[@]}" "$@"; }

# bench_install: a private installation with tacho in it; sets $bin.
bench_install() {
  local program
  for program in "$TACHO_PROGRAM" "${TACHO_PROGRAM%/*}/tacho-bench"; do
    [ -x "$program" ] || { say "error: no program \"$program\": make program lab, or set TACHO_PROGRAM"; exit 1; }
  done
  chmod 755 "$BENCH_DIR"
  mkdir -p "$BENCH_DIR/run"
  bin=${BENCH_BIN:-}/pg_config
  [ -x "$bin" ] || bin=$(TACHO_PROGRAM=$TACHO_PROGRAM "$top/tools/stage.sh" "$BENCH_DIR" 2>/dev/null)
  bin=${bin%/*}
  [ "$(id -u)" != 0 ] || chown -R "$("$top/tools/as-server.sh" --user)" "$BENCH_DIR"
}

# bench_recorder: sets $recorder, the program beside tacho
bench_recorder() {
  recorder=${TACHO_PROGRAM%/*}/tacho-record
  [ -x "$recorder" ] || { say "error: no program \"$recorder\": make program, or set TACHO_PROGRAM"; exit 1; }
}

# bench_package NAME: unpacks a Debian package of an extension for this server into the
# private installation; installs nothing. False if there is none.
bench_package() {
  local major dir=$BENCH_DIR/packages
  [ ! -e "$("$bin/pg_config" --pkglibdir)/${1//-/_}.so" ] || return 0
  major=$("$bin/pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
  mkdir -p "$dir/$1"
  (cd "$dir" && apt-get -qq download "postgresql-$major-$1" >/dev/null 2>&1) || return 1
  dpkg-deb -x "$dir/postgresql-$major-$1"_*.deb "$dir/$1" || return 1
  cp "$dir/$1"/usr/lib/postgresql/*/lib/*.so "$("$bin/pg_config" --pkglibdir)/"
  cp "$dir/$1"/usr/share/postgresql/*/extension/* "$("$bin/pg_config" --sharedir)/extension/"
}

# bench_peers: unpacks all peers that Debian has, and names the others
bench_peers() {
  local package
  for package in pg-stat-kcache pg-wait-sampling; do
    bench_package "$package" || say "$package is not packaged here"
  done
}

# bench_cluster NAME [SETTING…]: a new cluster with these settings.
bench_cluster() {
  local data="$BENCH_DIR/$1"
  shift
  as_server "$bin/initdb" -D "$data" -A trust -U postgres -N --locale=C >/dev/null
  {
    echo "port = $port"
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$BENCH_DIR/run'"
    echo "max_connections = 1100"
    echo "shared_buffers = 512MB"
    echo "autovacuum = off"
    echo "checkpoint_timeout = 1h"
    echo "max_wal_size = 8GB"
    printf '%s\n' "$@"
  } >> "$data/postgresql.conf"
}

start() { as_server "$bin/pg_ctl" -D "$BENCH_DIR/$1" -l "$BENCH_DIR/$1.log" -w start >/dev/null; }
stop() { as_server "$bin/pg_ctl" -D "$BENCH_DIR/$1" -m fast -w stop >/dev/null; }
sql() { "$bin/psql" -XAtq -h "$BENCH_DIR/run" -p "$port" -U postgres "$@"; }
bench_pgbench() { "${pin[@]}" "$bin/pgbench" -h "$BENCH_DIR/run" -p "$port" -U postgres "$@"; }

with_tacho() {
  printf '%s\n' "shared_preload_libraries = 'tacho'" \
    "tacho.sample_interval = $1" "tacho.max_cpu = 0"
}

median() { sort -n | awk '{v[NR]=$1} END {print (NR%2) ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }

# us PID…: CPU time of processes with all their threads, by the kernel's clock of each process
us() {
  perl -MTime::HiRes=clock_gettime -e 'my $sum = 0;
    for my $pid (@ARGV) { $sum += eval { clock_gettime((~int($pid) << 3) | 2) } // 0 }
    printf "%.0f", $sum * 1e6' "$@"
}
# us_ended PID: CPU time of its children that have ended
us_ended() { sed 's/.*) //' "/proc/$1/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%.0f", ($14 + $15) / hz * 1e6 }'; }

# Machine, versions and commit: the head of every results page.
environment() {
  echo "- date: $(date -u +%F), commit $(git -C "$top" rev-parse --short HEAD)"
  echo "- CPU: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
  echo "- kernel $(uname -r | grep -o '^[0-9.]*[0-9]'), $("$bin/postgres" --version)"
}

bench_cleanup() {
  local d
  for d in "$BENCH_DIR"/*/postmaster.pid; do
    [ -e "$d" ] && as_server "$bin/pg_ctl" -D "$(dirname "$d")" -m immediate stop >/dev/null 2>&1
  done
  rm -rf "$BENCH_DIR"
}
