"""Incidents whose cause holds a lock."""

from __future__ import annotations

import time

from incident import Steps, incident
from server import BUY, LOOKUP, Server, Session

PAY = "\\set a random(1, 3)\nUPDATE accounts SET n = n + 1 WHERE id = :a;\n"


def at_work(session: Session, sql: str) -> Steps:
    """Sends a statement that goes on for as long as the incident, and waits for its end."""
    word = session.send(sql)
    time.sleep(0.3)
    yield None
    session.wait(word)


@incident("a transaction is left open", r"^idle in transaction\|.*forgotten")
def idle_in_transaction(s: Server) -> Steps:
    s.load(4, 20, PAY)
    forgotten = s.session("forgotten")
    yield None
    forgotten.run("BEGIN; UPDATE accounts SET n = 0 WHERE id < 4")
    yield lambda: s.deploy("CREATE INDEX accounts_n ON items(stock)")
    forgotten.run("ROLLBACK")


@incident("a prepared transaction is left", r"^idle in transaction\|.*(prepared|two-phase)")
def prepared_transaction(s: Server) -> Steps:
    s.load(4, 20, PAY)
    yield None
    s.sql("BEGIN; UPDATE accounts SET n = 0 WHERE id < 4; PREPARE TRANSACTION 'two-phase'", user="shop", app="broker")
    yield None
    s.sql("ROLLBACK PREPARED 'two-phase'", user="shop")


@incident("ALTER TABLE orders waits for a reader, all others behind it", r"^change holds lock\|orders$")
def ddl_queue(s: Server) -> Steps:
    s.load(4, 40, LOOKUP)
    reader, change = s.session("psql"), s.session("migrate", user="deploy")
    yield None
    reader.run("BEGIN; SELECT count(*) FROM orders WHERE id < 5")
    word = change.send("ALTER TABLE orders ADD COLUMN comment text")
    time.sleep(0.3)
    yield None
    reader.run("COMMIT")
    change.wait(word)


@incident("CREATE INDEX holds up writers", r"^change holds lock\|.*items|^session holds lock\|.*deploy migrate")
def create_index(s: Server) -> Steps:
    s.deploy("CREATE FUNCTION slowly(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN IF $1 % 100 = 0 THEN PERFORM pg_sleep(0.1); END IF; RETURN $1; END$$")
    s.load(3, 20, BUY)
    change = s.session("migrate", user="deploy")
    yield None
    yield from at_work(change, "CREATE INDEX items_stock ON items(slowly(id))")


@incident("LOCK TABLE by a job that is at work", r"^session holds lock\|.*cron")
def lock_table(s: Server) -> Steps:
    s.load(3, 20, BUY)
    cron = s.session("cron")
    yield None
    yield from at_work(cron, "BEGIN; LOCK TABLE items; SELECT pg_sleep(18); COMMIT")


@incident("a batch updates rows, and works on", r"^session holds lock\|.*batch")
def batch_holds_rows(s: Server) -> Steps:
    s.load(3, 20, PAY)
    batch = s.session("batch")
    yield None
    yield from at_work(batch, "BEGIN; UPDATE accounts SET n = n + 1 WHERE id < 20; SELECT pg_sleep(18); COMMIT")


@incident("a session keeps an advisory lock", r"^(session holds lock|idle in transaction|idle session holds lock)\|.*worker")
def advisory_lock(s: Server) -> Steps:
    s.load(3, 20, "BEGIN;\nSELECT pg_advisory_xact_lock(7);\nSELECT 1;\nEND;\n")
    worker = s.session("worker")
    yield None
    worker.run("SELECT pg_advisory_lock(7)")
    yield lambda: s.deploy("ALTER TABLE accounts ADD COLUMN owner text")
    worker.run("SELECT pg_advisory_unlock(7)")


@incident("two orders of locking meet", r"^deadlock\|", within=4)
def deadlocks(s: Server) -> Steps:
    def transfer(first: int, second: int) -> str:
        update = "UPDATE accounts SET n = n + 1 WHERE id = {};\n"
        return f"BEGIN;\n{update.format(first)}SELECT pg_sleep(0.02);\n{update.format(second)}END;\n"

    s.load(2, 10, transfer(1, 2), "--max-tries=0", "-T", "300", app="ledger")
    yield None
    s.load(2, 10, transfer(2, 1), "--max-tries=0", "-T", "300", app="refunds")
    yield None


@incident("a release counts all visits in one row", r"^new query\|UPDATE accounts SET n = n \+ \$1 WHERE id = \$2 AND n", within=3)
def hot_row(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    yield None
    s.load(12, 0, "UPDATE accounts SET n = n + 1 WHERE id = 1 AND n >= 0;\n", app="web 2.0")
    yield None


@incident("REFRESH MATERIALIZED VIEW holds up readers", r"^change holds lock\|.*totals")
def refresh_view(s: Server) -> Steps:
    body = "CREATE OR REPLACE FUNCTION slowly(int) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM pg_sleep({}); RETURN $1; END$$"
    s.deploy(body.format(0) + "; CREATE MATERIALIZED VIEW totals AS SELECT id, slowly(price) AS price FROM items WHERE id < 100")
    s.deploy(body.format(0.2))
    s.load(3, 20, "SELECT sum(price) FROM totals;\n")
    change = s.session("migrate", user="deploy")
    yield None
    yield from at_work(change, "REFRESH MATERIALIZED VIEW totals")


@incident("TRUNCATE waits behind a dump, all others behind it", r"^(change|session) holds lock\|.*(visits|pg_dump)")
def truncate_behind_dump(s: Server) -> Steps:
    dump, change = s.session("pg_dump"), s.session("cron")
    s.load(3, 20, "\\set p random(1, 100)\nSELECT count(*) FROM visits WHERE id = :p;\n", app="report")
    yield None
    dump.run("BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE visits IN ACCESS SHARE MODE")
    word = change.send("TRUNCATE visits")
    time.sleep(0.3)
    yield None
    dump.run("COMMIT")
    change.wait(word)
