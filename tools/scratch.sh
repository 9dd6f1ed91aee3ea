#!/usr/bin/env bash
# usage: source tools/scratch.sh
#
# Sets TMPDIR, where tests keep what they throw away, unless the caller did. That is
# in memory where there is plenty: a file system on a disk spends as much time on
# files that come and go as the tests do on all else.

# much_memory: whether a run of tests may keep its files there
much_memory() {
	[ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -gt 12000000 ]
}

# shm_serves: whether programs may be run from /dev/shm and 8 GB are free there
shm_serves() {
	local shm=/dev/shm
	[ -w $shm ] && [ "$(stat -f -c %T $shm)" = tmpfs ] &&
		[ $(($(stat -f -c '%a * %S' $shm))) -gt 8000000000 ] &&
		! findmnt -no OPTIONS $shm | grep -q noexec
}

if [ -z "${TMPDIR:-}" ]; then
	TMPDIR=/tmp
	! much_memory || ! shm_serves || TMPDIR=/dev/shm
	export TMPDIR
fi
