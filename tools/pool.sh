#!/usr/bin/env bash
# usage: source tools/pool.sh
#
# Runs tests side by side, since most of them wait most of the time. All scripts
# that one command starts share one pool: it holds a token for each test that may
# run at a time (TACHO_JOBS, default two for each CPU). The pool is a pipe
# that children inherit; TACHO_POOL is its descriptor.

# pool_open: joins the pool of the caller, or makes one
pool_open() {
	local fifo count=${TACHO_JOBS:-$((2 * $(nproc)))}
	[ -z "${TACHO_POOL:-}" ] || [ ! -p "/proc/self/fd/$TACHO_POOL" ] || return 0
	fifo=$(mktemp -u "${TMPDIR:-/tmp}/tacho-pool.XXXXXX")
	mkfifo -m 666 "$fifo" # tests of another user open it again for its lock
	exec {TACHO_POOL}<>"$fifo"
	rm "$fifo"
	export TACHO_POOL
	printf '%*s' "$count" '' >&"$TACHO_POOL"
	export TACHO_JOBS=$count
}

# pool_run COMMAND...: in the background, as soon as there is a token. COMMAND
# does not see the pool: a server that it leaves behind holds no token.
pool_run() {
	local token
	IFS= read -rN 1 -u "$TACHO_POOL" token
	{
		eval '"$@"' "$TACHO_POOL>&-" || true
		printf '%s' "$token" >&"$TACHO_POOL"
	} &
}

# pool_alone COMMAND...: when no other test of the pool runs, and none begins. Collects
# all tokens; the lock lets one process collect at a time, so that two do not wait for
# each other's. COMMAND sees neither the pool nor the lock.
pool_alone() {
	local lock tokens
	exec {lock}<>"/proc/self/fd/$TACHO_POOL"
	flock "$lock"
	IFS= read -rN "$TACHO_JOBS" -u "$TACHO_POOL" tokens
	eval '"$@"' "$TACHO_POOL>&-" "$lock>&-" || true
	printf '%s' "$tokens" >&"$TACHO_POOL"
	exec {lock}>&-
}

# again TRY NAME LOG: true if a test that failed in try number TRY is run once more
# (TACHO_TRIES, default 1). Prints the end of its log, since an unsteady test must be
# mended.
again() {
	[ "$1" -lt "${TACHO_TRIES:-1}" ] || return 1
	printf 'UNSTEADY %s: failed, and is run once more\n%s\n' "$2" "$(tail -n 40 "$3" | sed 's/^/    /')"
}
