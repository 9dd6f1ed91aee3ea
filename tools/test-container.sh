#!/usr/bin/env bash
# usage: tools/test-container.sh
#
# Builds the images of container/Dockerfile from the packages of build/deb/bookworm, on a root
# that debootstrap makes. Then it tries them. The server is process 1 and records; its sampler
# ends while a child of it is slow to die. The history goes on in a new container, and the
# programs read it. The image of the root and its PostgreSQL (localhost/tacho-test-base) stay
# for the next run. Needs root and a network. The last line is "N passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/deb.sh
source tools/deb.sh
[ $# = 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
suite=bookworm major=15 passed=0 failed=0
name=tacho-test-$$ image=localhost/tacho-test
# the limits and the control groups of any host will do
run=(--runtime runc run --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024)
log=$(mktemp)
compgen -G "build/deb/$suite/*.deb" >/dev/null ||
	die "there are no packages for $suite" "make them: make package-deb SUITES=$suite"
tools/prereq.sh container
trap 'clean' EXIT

clean() {
	podman rm -f -t 0 "$name" >/dev/null 2>&1 || true
	podman volume rm -f "$name" >/dev/null 2>&1 || true
	rm -f "$log"
}
# holds WHAT COMMAND...
holds() {
	local what=$1
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1)); echo "ok - $what"
	else
		failed=$((failed + 1)); echo "not ok - $what"
		sort -u "$log" | tail -n 30 | sed 's/^/    /'
	fi
}
# waits COMMAND...: until it succeeds, for 60 s at most
waits() {
	local end=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}
build() { # TARGET FILE ARGUMENT...
	podman build -q --isolation chroot --network host -f "$2" -t "$image-$1" "${@:3}" . >/dev/null ||
		die "building $1 failed"
}
start() {
	podman "${run[@]}" -d --name "$name" -v "$name:/var/lib/postgresql/data" "$image-server" >/dev/null
	waits is_server
}
# an image makes its cluster with a server that is not process 1
is_server() { [ "$(inside cat /proc/1/comm)" = postgres ] && inside pg_isready -q; }
inside() { podman exec -u postgres "$name" "$@"; }
sql() { inside psql -X -A -t -q -d postgres -c "$1"; }
metric() { sql "select value from tacho.status() where metric = '$1'"; }
is() { [ "$1" = "$2" ] || { echo "got \"$1\", expected \"$2\""; return 1; }; }
recorded() { [ "$(sql 'select ticks_observed > 0 from tacho.aas()')" = t ]; }
newer() { [ "$(sql "select value::timestamptz > '$1' from tacho.status() where metric = 'last_tick_time'")" = t ]; }
programs() { # as compose.yaml starts them
	podman "${run[@]}" --rm --read-only --cap-drop ALL --security-opt no-new-privileges \
		-v "$name:/var/lib/postgresql/data:ro" "$image-programs" "$@"
}
# the sampler ends while its writer, stopped, does not die
slow_child() {
	local sampler writer started now
	started=$(sql 'select pg_postmaster_start_time()')
	sampler=$(metric sampler_pid) writer=$(metric writer_pid)
	[ -n "$started" ] && [ "$sampler" -gt 1 ] && [ "$writer" -gt 1 ] || return 1
	inside kill -STOP "$writer"
	inside kill -TERM "$sampler"
	waits ended "$sampler" || return 1
	inside kill -KILL "$writer" 2>/dev/null || true
	now=$(sql 'select clock_timestamp()')
	waits newer "$now" || return 1
	is "$(sql 'select pg_postmaster_start_time()')" "$started" || return 1
	! podman logs "$name" 2>&1 | grep -E 'terminating any other active|reinitializing'
}
# the image volume of CloudNativePG: the files that a server of PostgreSQL 18 looks for
volume() {
	local dir each
	dir=$(podman image mount "$image-extension")
	for each in lib/tacho.so lib/tacho-parent share/extension/tacho.control bin/tacho; do
		[ -s "$dir/$each" ] || { echo "no $each"; return 1; }
	done
	podman image umount "$image-extension"
}
ended() { ! inside test -e "/proc/$1"; }

deb_base "$suite"
podman image exists "$image-root" ||
	tar -C "$deb_cache/$suite/base" -c . | podman import -q - "$image-root" >/dev/null
build base container/test/Dockerfile --build-arg "ROOT=$image-root" --build-arg "MAJOR=$major"
for each in server programs extension; do
	build "$each" container/Dockerfile --target "$each" --build-arg "BASE=$image-base" \
		--build-arg "DEBIAN=$image-root" --build-arg "SUITE=$suite" --build-arg "PG_MAJOR=$major"
done
if command -v hadolint >/dev/null; then
	holds 'hadolint says nothing' hadolint container/Dockerfile container/test/Dockerfile
fi
holds 'the image volume has library, SQL objects and program' volume
holds 'the server starts' start
[ $failed = 0 ] || { podman logs "$name" 2>&1 | tail -n 20; die 'it does not run'; }
holds 'it is process 1' is "$(inside cat /proc/1/comm)" postgres
holds 'it has the extension in a new database' is "$(sql 'create database shop' &&
	inside psql -X -A -t -d shop -c "select extname from pg_extension where extname = 'tacho'")" tacho
holds 'it records' waits recorded
holds 'its sampler ends while a child is slow to die, and the server goes on' slow_child
holds 'tacho doctor finds nothing missing' inside tacho doctor "host=/var/run/postgresql dbname=postgres"
holds 'programs of another container read the history' programs top --tape /var/lib/postgresql/data/tacho
before=$(metric first_tick_time)
podman stop -t 60 "$name" >/dev/null
holds 'it stops as asked' grep -q 'database system is shut down' <(podman logs "$name" 2>&1)
podman rm "$name" >/dev/null
holds 'a new container starts' start
holds 'its history is the one of the volume' is "$(metric first_tick_time)" "$before"
holds 'and goes on' waits newer "$(sql 'select clock_timestamp()')"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
