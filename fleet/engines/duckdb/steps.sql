-- The steps of an answer, which the program fills one after the other.

-- Servers asked for, ticks of the window and before it, and the result of observed() for
-- them.
create table asked_servers (server varchar);
create table ticks_alike (
  server varchar, bucket bigint, is_failed bigint, interval_ms bigint, vcpus decimal(18, 2),
  ticks bigint, length_ms bigint, last_slot bigint);
create table ticks_before (server varchar, interval_ms bigint, last_slot bigint);
create table window_observed (
  server varchar, bucket bigint, observed_ms bigint, failed_ms bigint, ticks_observed bigint,
  ticks_failed bigint, interval_ms bigint, last_slot bigint, vcpus decimal(18, 2),
  vcpus_slot bigint);

-- The result of alike().
create table observed_alike (bucket bigint, observed_ms bigint, servers bigint);

-- Load and most rows in a tick, by key and by part of a key. Then the results of totals() and
-- loads() for them, and the same by line of the answer.
create table cells_of_keys (
  server varchar, line struct(key varchar, by_key varchar), bucket bigint, load_ms bigint,
  sessions bigint);
create table cells_of_parts as from cells_of_keys;
create table totals_of_keys (
  server varchar, line struct(key varchar, by_key varchar), load_ms bigint, sessions bigint);
create table totals_of_parts as from totals_of_keys;
create table totals_of_lines (
  server varchar, line struct(place bigint, by_place bigint), load_ms bigint, sessions bigint);
create table loads_of_keys (
  line struct(key varchar, by_key varchar), bucket bigint, observed_ms bigint, load_ms bigint,
  sessions bigint);
create table loads_of_parts as from loads_of_keys;
create table loads_of_lines (
  line struct(place bigint, by_place bigint), bucket bigint, observed_ms bigint, load_ms bigint,
  sessions bigint);

-- Keys and parts by rank.
create table key_ranks (key varchar, place bigint);
create table line_ranks (key varchar, by_key varchar, place bigint, by_place bigint);

-- Results of seen_in_window(), and of seen_in_buckets() or seen_alike().
create table seen_window (
  server varchar, servers bigint, period bigint, length_us bigint, observed_ms bigint, failed_ms bigint,
  ticks_observed bigint, ticks_failed bigint, interval_ms bigint, vcpus decimal(18, 2));
create table seen_buckets as from seen_window;

-- Attributes of the server in each hour.
create table known_servers (
  server varchar, hour bigint, host varchar, labels varchar, shipper varchar, damage varchar);
