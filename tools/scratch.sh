#!/usr/bin/env bash
# usage: source tools/scratch.sh
#
# Sets TMPDIR, the directory of the tests' temporary files, unless the caller did. It is
# in memory if there is plenty: a file system on a disk spends as much time on creating
# and removing files as the tests do on all else.

# much_memory: true if a run of tests may keep its files in memory
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
