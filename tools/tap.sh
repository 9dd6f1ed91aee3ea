#!/usr/bin/env bash
# usage: source tools/tap.sh
#
# TAP tests of one PostgreSQL, for tools/test-pg.sh: in TACHO_SCRATCH/src, with the
# programs of $bin, the Perl modules of $test and its result().

: "${bin:?}" "${test:?}" "${version:?}"
longest='092 190 120 216 090 020 160 108 017' # tests that take more than ten seconds

# tap FILE [TRY]: prints passed and failed assertions. If FILE fails in all of two or more
# TACHO_TRIES beside other tests, it is added to out/alone and does not count yet. The try
# alone, after these, counts.
tap() {
	local name log ok bad=0 try=${2:-1} started=$SECONDS
	name=$(basename "$1" .pl)
	log=$TACHO_SCRATCH/out/$name.log
	until tap_once "$1" "../out/$name" >"$log" 2>&1; do
		again $((try++)) "$version: $name" "$log" && continue
		if [ "${TACHO_TRIES:-1}" -gt 1 ] && [ "$try" -le $((TACHO_TRIES + 1)) ]; then
			printf 'UNSTEADY %s: failed %d times, and is run alone at the end\n' "$version: $name" "$TACHO_TRIES"
			echo "$1" >>"$TACHO_SCRATCH/out/alone"
			return
		fi
		bad=$(grep -c '^not ok ' "$log" || true)
		[ "$bad" -gt 0 ] || bad=1
		break
	done
	ok=$(grep -c '^ok ' "$log" || true)
	result "$name" "$ok" "$bad" "$log" $((SECONDS - started))
	rm -rf "../out/$name"
}

tap_once() { # FILE DIR: if it fails, also prints the expected values and the servers' logs
	rm -rf "$2"
	mkdir -p "$2"
	(
		cd "$2" || exit
		export TESTDATADIR=$PWD/tmp_check TESTLOGDIR=$PWD/tmp_check/log TESTDIR=$PWD
		export PG_REGRESS=$test/regress/pg_regress PATH=$TACHO_SCRATCH/first:$bin:$PATH PGPORT=65432
		# A test that hangs is ended and run again: if psql ends before it gets its
		# query, IPC::Run (20220807) writes to it forever.
		timeout -k 60 900 prove -v -I "$test/perl" -I "$TACHO_SCRATCH/src/extension/test/perl" "$1"
	) && return
	find "$2" -name 'regress_log_*' -exec cat {} + |
		grep -E '^(\[[^]]+\]\([^)]+\) )?(not ok|# ?  |[a-zA-Z].* at .* line )' || true
	find "$2" -name '*.log' -exec grep -hv 'LOG:  statement:' {} + | tail -n 20
	return 1
}

# template: makes a cluster that the TAP tests copy. The copies have its system
# identifier; a test that needs another one says so (init => {extra => []}).
template() {
	export INITDB=$bin/initdb INITDB_TEMPLATE=$TACHO_SCRATCH/template
	"$INITDB" -D "$INITDB_TEMPLATE" -A trust -N >"$TACHO_SCRATCH/out/initdb.log"
	mkdir "$TACHO_SCRATCH/first"
	ln -s "$PWD/tools/initdb" "$TACHO_SCRATCH/first/"
}

tap_files() { # the longest first, without names that begin with TACHO_LEFT_OUT
	local each
	for each in $longest ''; do
		printf '%s\n' "$PWD/extension/test/t/$each"*.pl
	done | awk '!seen[$0]++' | grep -v "/t/${TACHO_LEFT_OUT:-none}[^/]*$"
}
