# shellcheck shell=bash disable=SC2034,SC2154 # set by test.sh and for it
# Functions of test.sh that run scenarios and check their results; sourced, not run.

# bench ARGUMENTS...: its messages go to $dir/log
bench() { "$program" bench "$@" --pg-bin "$bin" --scratch "${scratch:-$dir}" >"$dir/log" 2>&1 </dev/null; }
said() { grep -qF -- "$1" "$dir/log"; }
refused() { # MESSAGE ARGUMENTS...
	local message=$1
	shift
	! bench "$@" && said "$message"
}
runs() { [ "$(wc -l <"$dir/$1/runs.jsonl")" = "$2" ]; }
nobody_left() { # the writer of a server that was stopped at once follows it by itself
	local _
	for _ in {1..600}; do
		! pgrep -f "$dir/tacho-bench" && ! compgen -G "$dir/tacho-bench.*" && return
		sleep 0.1
	done
	return 1
}
whole() { # DIRECTORY: every kind of result is there and the report is complete
	local file
	for file in experiment.json servers.jsonl runs.jsonl runs.csv summary.json report.md report.html; do
		[ -s "$dir/$1/$file" ] || return 1
	done
	! grep -q INCOMPLETE "$dir/$1/report.md" && grep -q '<svg' "$dir/$1/report.html"
}

# slow_servers: a copy of $bin in $slow whose servers take one second longer to start
slow_servers() {
	slow=$dir/slow
	mkdir "$slow"
	ln -s "$bin"/* "$slow/"
	rm "$slow/pg_ctl"
	printf '#!/bin/sh\ncase " $* " in *" start "*) sleep 1 ;; esac\nexec "%s" "$@"\n' "$bin/pg_ctl" >"$slow/pg_ctl"
	chmod 755 "$slow" "$slow/pg_ctl"
}

# cut_off WHEN ARGUMENTS...: Ctrl-C once command WHEN succeeds; $status is how the experiment ended
cut_off() {
	local when=$1 pid
	shift
	"$program" bench "$@" --pg-bin "$slow" --scratch "$dir" >"$dir/log" 2>&1 </dev/null &
	pid=$!
	until $when >"$dir/check.log" 2>&1 || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done # or it ends by itself
	kill -INT $pid || true
	status=0
	wait $pid || status=$?
}
