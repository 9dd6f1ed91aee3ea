# shellcheck shell=bash disable=SC2154 # variables and functions of test.sh

# Parts of bench/test.sh. They are about one server that a reload switches between variants,
# about a scenario of costs alone, and about bench/all.sh. Sourced, not run.

cat >"$dir/reload.toml" <<'END'
name = "reload"
title = "One server, switched by reload"
question = "?"
rounds = 2
reload = true
[statement]
sql = "select 1"
setting = "work_mem"
values = ["1MB", "2MB"]
[[variant]]
name = "seven"
settings = { checkpoint_timeout = "7min" }
ready = "select current_setting('checkpoint_timeout') = '7min'"
[[variant]]
name = "eleven"
preload = ["pg_stat_statements"]
settings = { checkpoint_timeout = "11min" }
[[metric]]
name = "timeout"
sql = { seven = "select setting from pg_settings where name = 'checkpoint_timeout'", eleven = "select setting from pg_settings where name = 'checkpoint_timeout'" }
[[metric]]
name = "memory"
sql = { seven = "select setting from pg_settings where name = 'work_mem'", eleven = "select setting from pg_settings where name = 'work_mem'" }
[[metric]]
name = "started"
sql = { seven = "select extract(epoch from pg_postmaster_start_time())", eleven = "select extract(epoch from pg_postmaster_start_time())" }
END
asked() { # METRIC: variant, value, number of each run
	sed -nE "s/^[^,]*,([^,]*),,,,([^,]*),[0-9]+,$1,/\1 \2 /p" "$dir/reload/runs.csv" | sort -u | paste -sd,
}
check "variants are switched by reload" bench "$dir/reload.toml" --output "$dir/reload"
check "to the settings of each" [ "$(asked timeout)" = "eleven 1MB 660,eleven 2MB 660,seven 1MB 420,seven 2MB 420" ]
check "and to each value" [ "$(asked memory)" = "eleven 1MB 1024,eleven 2MB 2048,seven 1MB 1024,seven 2MB 2048" ]
started() { asked started | tr , '\n' | cut -d' ' -f3 | sort -u; }
check "of a server that was started once" [ "$(started | grep -c .)" = 1 ]
kept_run() { [ "$(wc -l <"$dir/kept/runs.jsonl")" -ge 1 ]; }
cut_off kept_run "$dir/reload.toml" --rounds 100 --output "$dir/kept"
check "Ctrl-C ends a server that is kept" [ "$status" = 130 ]
check "and leaves nothing of it" nobody_left
check "a setting that takes a restart is refused there" refused "shared_buffers cannot be changed by a reload" \
	setting --reload --name shared_buffers --values 64MB,128MB --sql "select 1" --output "$dir/restarted"
check "what needs a stopped server is refused beside reload" refused "statement.cold requires restarts of the server" \
	setting --reload --cold --name work_mem --values 1MB,2MB --sql "select 1" --output "$dir/restarted"
check "recording is switched on and off" bench recording --rounds 1 --scale 1 --workloads select-only \
	--variants "off,10 ms" --output "$dir/recording"
check "and its budgets are reported" grep -q '| 10 ms | transactions/s | ≥ 0.97 | ' "$dir/recording/report.md"
check "statements are costed without a load" bench instructions --workloads "SELECT 1" \
	--variants "query identifiers,tacho" --output "$dir/instructions"
check "in a table of their own" grep -q '^| SELECT 1 | [0-9.a-z]* | tacho | ' "$dir/instructions/report.md"

# bench/all.sh with stand-ins for its parts: one part fails
mkdir -p "$dir/all/results"
cp "$repo/bench/all.sh" "$dir/all/"
cat >"$dir/all/lib.sh" <<END
here=$dir/all TACHO_PROGRAM=none bin=none
bench_install() { :; }
bench_peers() { :; }
bench_cleanup() { :; }
END
cat >"$dir/all/experiments.sh" <<'END'
#!/bin/sh
[ "$3" != churn ] || { echo "no disk" >&2; exit 1; }
END
printf '#!/bin/sh\necho new\n' >"$dir/all/locks.sh"
chmod 755 "$dir/all/"*.sh
printf 'old\n<!-- kept by bench/all.sh -->\nby hand\n' >"$dir/all/results/locks.md"
all() { "$dir/all/all.sh" -c "$dir/all" "$@" 2>"$dir/log" || return; }
fails() { ! "$@"; }
check "a part that fails fails all" fails all churn overhead locks
check "it is named with its reason" grep -q '^churn: .*FAILED: no disk$' "$dir/log"
check "the others are measured" [ "$(paste -sd, "$dir/all/results/locks.md")" = "new,<!-- kept by bench/all.sh -->,by hand" ]
check "and not again" fails all churn overhead
check "which is said" grep -q '^overhead: measured before$' "$dir/log"
check "an unknown part is refused" fails all nothing
