-- Members of pg_read_all_stats see all sessions. Another role that is granted
-- EXECUTE sees its own sessions and the texts of its own queries only.
revoke execute on all functions in schema tacho from public;
grant execute on all functions in schema tacho to pg_read_all_stats;
