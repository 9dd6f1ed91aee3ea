# shellcheck shell=bash disable=SC2154
# a synchronous standby is stopped, its connection stays open, and every commit waits for it

before() {
	standby=$(as_server mktemp -d /var/tmp/tacho-standby.XXXXXX)
	as_server "$bin/pg_basebackup" -D "$standby" -R -c fast -d "$dsn application_name=second"
	as_server "$bin/pg_ctl" -s -w -D "$standby" -l "$standby/server.log" \
		-o "-p 54999 -k $standby -c shared_preload_libraries=" start
	set_to synchronous_standby_names second
}

trouble() {
	postmaster=$(as_server head -n 1 "$standby/postmaster.pid")
	mapfile -t frozen < <(pgrep -P "$postmaster")
	kill -STOP "$postmaster" "${frozen[@]}"
	sleep "$length"
}

after() {
	reset synchronous_standby_names
	kill -CONT "${frozen[@]}" "$postmaster"
	as_server "$bin/pg_ctl" -s -w -D "$standby" -m immediate stop
	rm -rf "$standby"
}
