-- Observed minutes, from the small table.
select server, micros(minute) as minute, observed_ms from load_minute where observed_ms is not null
