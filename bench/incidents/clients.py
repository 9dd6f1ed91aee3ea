"""Incidents whose cause is what clients ask."""

from __future__ import annotations

from incident import Steps, incident
from server import LOOKUP, Server

RANGE = "\\set c random(0, 4900)\nSELECT sum(amount) FROM orders WHERE customer BETWEEN :c AND :c + 300;\n"


@incident("a release sends a new query", r"^new query\|SELECT count\(DISTINCT note\) FROM orders")
def new_query(s: Server) -> Steps:
    s.load(4, 40, LOOKUP)
    yield None
    s.load(2, 4, "SELECT count(DISTINCT note) FROM orders WHERE amount < 50;\n", app="web 2.0")
    yield None


@incident("a loop asks for each row by itself", r"^more calls\|SELECT sum\(amount\) FROM orders WHERE customer BETWEEN")
def calls_in_a_loop(s: Server) -> Steps:
    s.load(1, 2, RANGE)
    yield None
    s.load(4, 80, RANGE)
    yield None


@incident("a pool opens 50 connections", r"^more connections\|", within=3)
def connection_storm(s: Server) -> Steps:
    s.load(2, 3, RANGE)
    yield None
    s.load(50, 100, RANGE, app="pool")
    yield None


@incident("clients take all connections and try again", r"^more connections\|", conf="max_connections = 40", within=3)
def connections_used_up(s: Server) -> Steps:
    s.load(4, 10, RANGE, "-C")
    yield None
    s.load(28, 100, RANGE, app="pool")
    yield None


@incident("a batch starts", r"^new query\|(UPDATE orders SET amount|SELECT|END|BEGIN)")
def batch_starts(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    yield None
    s.load(1, 0, "\\set c random(0, 4999)\nUPDATE orders SET amount = amount + 1 WHERE customer = :c;\n", app="nightly")
    yield None


@incident("an analyst asks a long question", r"^new query\|SELECT o.customer, count\(\*\) FROM orders o")
def long_report(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    analyst = s.session("analyst")
    yield None
    analyst.send("SELECT o.customer, count(*) FROM orders o JOIN orders p ON p.amount = o.amount WHERE o.id < 20000 GROUP BY 1 ORDER BY 2 DESC LIMIT 1")
    yield None


@incident("a report sorts in files", r"^new query\|SELECT note, id FROM orders", conf="work_mem = 1MB")
def report_sorts(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    yield None
    s.load(2, 2, "SELECT note, id FROM orders ORDER BY note DESC, id OFFSET 199990;\n", app="report")
    yield None


@incident("an import inserts rows in bulk", r"^(new query|rows changed)\|(INSERT INTO|COPY) history")
def bulk_load(s: Server) -> Steps:
    s.deploy("CREATE TABLE history(id int, note text)")
    s.load(3, 20, LOOKUP)
    yield None
    s.load(1, 0, "INSERT INTO history SELECT n, repeat('y', 100) FROM generate_series(1, 20000) n;\n", app="import")
    yield None


@incident("clients insert keys that exist, again and again", r"^new query\|(DO|INSERT INTO accounts)")
def unique_violations(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    yield None
    insert = "BEGIN INSERT INTO accounts VALUES (i, 0); EXCEPTION WHEN unique_violation THEN NULL; END;"
    s.load(2, 0, f"DO $$BEGIN FOR i IN 1..100 LOOP {insert} END LOOP; END$$;\n", app="web 2.0")
    yield None


@incident("a release asks 300 partitions", r"^new query\|SELECT count\(\*\) FROM parted")
def many_partitions(s: Server) -> Steps:
    s.deploy("CREATE TABLE parted(id int, day int) PARTITION BY LIST (day); DO $$BEGIN FOR i IN 1..300 LOOP EXECUTE format('CREATE TABLE parted%s PARTITION OF parted FOR VALUES IN (%s)', i, i); END LOOP; END$$")
    s.load(3, 20, "\\set d random(1, 300)\nSELECT max(id) FROM parted WHERE day = :d;\n")
    yield None
    s.load(4, 0, "SELECT count(*) FROM parted WHERE id = 5;\n", app="web 2.0")
    yield None


@incident("a release replaces a query by a worse one", r"^new query\|SELECT sum\(amount\) FROM orders WHERE customer \+")
def query_rewritten(s: Server) -> Steps:
    old = s.load(3, 20, LOOKUP)
    yield None
    old.terminate()
    s.load(3, 20, LOOKUP.replace("customer =", "customer + 0 ="), app="web 2.0")
    yield None


@incident("VACUUM (FREEZE) of orders", r"^(new query|analyzed|rows changed)\|VACUUM")
def freeze(s: Server) -> Steps:
    s.load(3, 20, LOOKUP)
    job = s.session("maintenance")
    yield None
    word = job.send("SET vacuum_cost_delay = 5; SET vacuum_cost_limit = 50; VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) orders")
    yield None
    job.wait(word, 120)


@incident("twice as many users", r"^more calls\|SELECT sum\(amount\)")
def more_users(s: Server) -> Steps:
    s.load(2, 10, RANGE)
    yield None
    s.load(4, 40, RANGE)
    yield None
