#!/usr/bin/env bash
# Cost of one long message, compared with pg_stat_statements.
#
# usage: bench/messages.sh [-r ROUNDS] [-m MIB] [-w MESSAGES]
#
#   -r  rounds, default 5
#   -m  size of the long messages in MiB, default 100
#   -w  messages, default "selects alters selects_long do_long"
#
#   selects       8,000 distinct SELECTs, about 570 KB.
#   alters        20,000 ALTER TABLE IF EXISTS of tables that do not exist.
#   selects_long  the SELECTs, then a comment of MIB.
#   do_long       one DO with a string of MIB in its block.
#
# One server without statistics, one with pg_stat_statements, one with all of tacho. In
# rotating order each executes a message in a new session, after a reset of the
# statistics. Prints medians of the CPU time of the session's process, and of the ratios
# within a round. Markdown on standard output.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=bench/statements/lib.sh
source "$here/statements/lib.sh"

rounds=5 mib=100 messages="selects alters selects_long do_long" variants=(none pgss tacho)
while getopts r:m:w: option; do
  case $option in
    r) rounds=$OPTARG ;;
    m) mib=$OPTARG ;;
    w) messages=$OPTARG ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
trap bench_cleanup EXIT
bench_install

# shellcheck disable=SC2016 # dollars quote the block
# message NAME: statements joined by "\;", which psql sends as one message
message() {
  case $1 in
    selects) seq 8000 | sed 's/.*/WITH new_& AS (SELECT 1, '\''x'\'') SELECT a.* FROM new_& AS a \\;/' ;;
    alters) seq 20000 | sed 's/.*/ALTER TABLE IF EXISTS none_& ADD COLUMN a int \\;/' ;;
    selects_long) message selects; printf '/* '; words; printf ' */ ' ;;
    do_long) printf 'DO $a$ BEGIN PERFORM length($b$'; words; printf '$b$); END $a$ \\;' ;;
    *) say "error: no message \"$1\""; exit 2 ;;
  esac
  echo "SELECT 1;"
}

words() { yes 'calm words, token by token' | tr '\n' ' ' | head -c "${mib}M" || [ $? = 141 ]; }

# cpu_ms FILE: CPU time that a new session's process takes for the message
cpu_ms() {
  {
    # shellcheck disable=SC2016 # psql sets BACKEND
    printf '%s\n' 'SELECT pg_backend_pid() AS pid \gset' '\setenv BACKEND :pid' \
      'SET client_min_messages = error;' '\! cat /proc/$BACKEND/schedstat' '\o /dev/null'
    cat "$1"
    # shellcheck disable=SC2016
    printf '%s\n' '\o' '\! cat /proc/$BACKEND/schedstat'
  } | sql -v ON_ERROR_STOP=1 postgres | awk '{ at[NR] = $1 } END { printf "%.1f\n", (at[NR] - at[1]) / 1e6 }'
}

reset() { # VARIANT
  [ "$1" = none ] || sql -c "SELECT $(view "$1" | sed 's/^tacho.*/tacho.statements/')_reset()" postgres >/dev/null
}

ratio() { # MESSAGE VARIANT BASE: of each round
  paste -d' ' "$BENCH_DIR/$1.$2" "$BENCH_DIR/$1.$3" | awk '{ printf "%.3f\n", $1 / $2 }'
}

for variant in "${variants[@]}"; do prepare "$variant" 5000; done
for name in $messages; do message "$name" >"$BENCH_DIR/$name.message"; done
for ((round = 0; round < rounds; round++)); do
  for ((n = 0; n < ${#variants[@]}; n++)); do
    variant=${variants[(n + round) % ${#variants[@]}]}
    start "$variant"
    for name in $messages; do
      reset "$variant"
      cpu_ms "$BENCH_DIR/$name.message" >>"$BENCH_DIR/$name.$variant"
      say "round $((round + 1)) of $rounds, $name, $variant: $(tail -n 1 "$BENCH_DIR/$name.$variant") ms, load average $(cut -d' ' -f1 /proc/loadavg)"
    done
    stop "$variant"
  done
done

echo "# What one long message costs"
echo
environment
echo "- command: \`bench/messages.sh -r $rounds -m $mib\`"
echo "- budget: at most 1.2 times what pg_stat_statements takes"
echo
echo "| message | bytes | none, ms of CPU | pgss | tacho | tacho / pgss | its range |"
echo "|---|--:|--:|--:|--:|--:|--:|"
for name in $messages; do
  printf '| %s | %d' "$name" "$(wc -c <"$BENCH_DIR/$name.message")"
  for variant in "${variants[@]}"; do printf ' | %s' "$(median <"$BENCH_DIR/$name.$variant")"; done
  printf ' | %s | %s |\n' "$(ratio "$name" tacho pgss | median)" "$(ratio "$name" tacho pgss | sort -n | sed -n '1p;$p' | paste -sd' ' | sed 's/ / to /')"
done
