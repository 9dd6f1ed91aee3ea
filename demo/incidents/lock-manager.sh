# shellcheck shell=bash disable=SC2154
# a query without the partition key locks 200 partitions and their indexes, in 40 sessions at once

before() {
	sql setup "create table if not exists reading (day int, sensor int, value real) partition by range (day)"
	sql setup "do \$\$ begin for i in 1..200 loop
		execute format('create table if not exists reading_%s partition of reading for values from (%s) to (%s)', i, i, i + 1);
	end loop; end \$\$"
	sql setup "create index if not exists reading_sensor on reading (sensor)"
}

trouble() {
	bench "sensor page" "$length" -c 40 -j 2 -f "$load/sensor.sql"
	sleep "$length"
}
