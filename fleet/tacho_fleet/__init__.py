"""One question to the history of many PostgreSQL servers."""
