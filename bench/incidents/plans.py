"""Incidents whose cause is a change of the schema, of settings of the planner, or of rows."""

from __future__ import annotations

from incident import Steps, incident
from server import BUY, LOOKUP, Server

QUEUE = "SELECT max(id) FROM jobs WHERE state = 'new';\n"


@incident("DROP INDEX orders_customer", r"^index dropped\|orders_customer$")
def index_dropped(s: Server) -> Steps:
    s.load(4, 40, LOOKUP)
    yield None
    s.deploy("DROP INDEX orders_customer")
    yield None


@incident("ALTER TABLE items DROP CONSTRAINT items_pkey", r"^table changed\|items$")
def key_dropped(s: Server) -> Steps:
    s.load(4, 40, BUY)
    yield None
    s.deploy("ALTER TABLE items DROP CONSTRAINT items_pkey")
    yield lambda: s.deploy("CREATE INDEX items_price ON items(price)")


@incident("random_page_cost = 100000", r"^planner setting\|random_page_cost$")
def random_page_cost(s: Server) -> Steps:
    s.load(4, 40, LOOKUP)
    yield None
    s.set("random_page_cost", "100000")
    yield lambda: s.deploy("CREATE INDEX orders_note ON orders(note)")


@incident("work_mem = 64kB", r"^memory setting\|work_mem$", conf="work_mem = 32MB")
def work_mem(s: Server) -> Steps:
    s.load(2, 3, "SELECT count(*) FROM orders WHERE id < 3000 AND id NOT IN (SELECT id FROM jobs WHERE id < 12000);\n")
    yield None
    s.set("work_mem", "64kB")
    yield lambda: s.set("cpu_index_tuple_cost", "0.006")


@incident("jit_above_cost = 0", r"^planner setting\|jit_above_cost$")
def jit(s: Server) -> Steps:
    s.load(4, 20, LOOKUP + "SELECT count(*), min(price) FROM items WHERE id < 50 AND price > 3;\n", app="shop")
    yield None
    s.set("jit_above_cost", "0")
    yield lambda: s.set("log_min_duration_statement", "7000")


@incident("plan_cache_mode = force_generic_plan", r"^planner setting\|plan_cache_mode$", conf="plan_cache_mode = force_custom_plan")
def generic_plan(s: Server) -> Steps:
    s.deploy("CREATE TABLE parcels AS SELECT n AS id, CASE WHEN n > 59990 THEN 'lost' WHEN hashint4(n) % 2 = 0 THEN 'sent' ELSE 'here' END AS state FROM generate_series(1, 60000) n; ALTER TABLE parcels ADD PRIMARY KEY (id); CREATE INDEX parcels_state ON parcels(state); ANALYZE parcels")
    s.load(2, 20, "SELECT id FROM parcels WHERE state = :state ORDER BY id LIMIT 1;\n", "-M", "prepared", "-D", "state=lost")
    yield None
    s.set("plan_cache_mode", "force_generic_plan")
    yield lambda: s.deploy("ALTER TABLE items ALTER price SET DEFAULT 1")


@incident("ALTER ROLE seller SET enable_indexscan, enable_bitmapscan = off", r"^(table changed|planner setting|role setting)\|.*(seller|enable_)")
def role_setting(s: Server) -> Steps:
    s.load(2, 10, LOOKUP, "-C", user="seller", app="till")
    yield None
    s.deploy("ALTER ROLE seller SET enable_indexscan = off; ALTER ROLE seller SET enable_bitmapscan = off; ALTER ROLE seller SET enable_indexonlyscan = off")
    yield lambda: s.deploy("CREATE INDEX orders_note ON orders(note)")


@incident("UPDATE of 100,000 jobs", r"^rows changed\|UPDATE jobs")
def stale_statistics(s: Server) -> Steps:
    s.load(3, 20, QUEUE)
    yield None
    s.sql("UPDATE jobs SET state = 'new' WHERE id < 100000", user="shop", app="admin")
    yield lambda: s.set("cpu_index_tuple_cost", "0.006")


@incident("INSERT of 400,000 visits", r"^(rows changed|new query)\|(COPY|INSERT INTO) visits")
def scan_after_growth(s: Server) -> Steps:
    s.load(3, 20, "\\set p random(0, 99)\nSELECT count(*) FROM visits WHERE page = :p;\n", app="report")
    yield None
    s.sql("INSERT INTO visits(page) SELECT n % 100 FROM generate_series(1, 400000) n", user="shop", app="import")
    yield lambda: s.deploy("ALTER TABLE visits ADD COLUMN agent text")


@incident("CREATE OR REPLACE FUNCTION price_of", r"^(table changed|index created|code changed)\|.*price_of")
def function_replaced(s: Server) -> Steps:
    s.deploy("CREATE FUNCTION price_of(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT price::bigint FROM items WHERE id = i'")
    s.load(3, 30, "\\set i random(1, 20000)\nSELECT price_of(:i);\n")
    yield None
    s.deploy("CREATE OR REPLACE FUNCTION price_of(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM orders WHERE amount = i % 97'")
    yield lambda: s.set("log_min_duration_statement", "7000")


@incident("CREATE TRIGGER on items", r"^(table changed|index created|code changed)\|.*(items|audit)")
def trigger_created(s: Server) -> Steps:
    s.deploy("CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM count(*) FROM orders WHERE amount = NEW.stock; RETURN NEW; END$$")
    s.load(3, 20, BUY)
    yield None
    s.deploy("CREATE TRIGGER audited AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION audit()")
    yield None


@incident("CREATE POLICY on orders", r"^code changed\|own$")
def policy_created(s: Server) -> Steps:
    s.deploy("CREATE FUNCTION may(c int) RETURNS bool LANGUAGE plpgsql AS $$BEGIN RETURN (SELECT count(*) > 0 FROM items WHERE price = c % 100); END$$; ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of ON orders USING (true)")
    s.load(2, 10, LOOKUP, user="seller", app="till")
    yield None
    s.deploy("CREATE POLICY own ON orders AS RESTRICTIVE USING (may(customer))")
    yield lambda: s.deploy("CREATE INDEX items_price ON items(id, stock)")


@incident("CREATE OR REPLACE VIEW offers", r"^(table changed|index created|code changed)\|.*offers")
def view_replaced(s: Server) -> Steps:
    s.deploy("CREATE VIEW offers AS SELECT id, price::bigint AS price FROM items")
    s.load(3, 20, "\\set i random(1, 20000)\nSELECT price FROM offers WHERE id = :i;\n")
    yield None
    s.deploy("CREATE OR REPLACE VIEW offers AS SELECT i.id, i.price + (SELECT count(*) FROM orders o WHERE o.amount = i.price) AS price FROM items i")
    yield lambda: s.deploy("CREATE INDEX orders_note ON orders(note)")


@incident("ALTER TABLE parts ADD FOREIGN KEY (box)", r"^other table changed\|parts$")
def foreign_key_without_index(s: Server) -> Steps:
    s.deploy("CREATE TABLE boxes AS SELECT n AS id FROM generate_series(1, 20000) n; ALTER TABLE boxes ADD PRIMARY KEY (id); CREATE TABLE parts AS SELECT n AS id, 20000 - n % 100 AS box FROM generate_series(1, 200000) n; ANALYZE boxes; ANALYZE parts")
    s.load(2, 20, "\\set i random(1, 19000)\nDELETE FROM boxes WHERE id = :i;\nINSERT INTO boxes VALUES (:i) ON CONFLICT DO NOTHING;\n")
    yield None
    s.deploy("ALTER TABLE parts ADD FOREIGN KEY (box) REFERENCES boxes(id)")
    yield lambda: s.deploy("ALTER TABLE items ALTER price SET DEFAULT 1")


QUEUES = """
autovacuum_naptime = 1s
autovacuum_vacuum_scale_factor = 0
autovacuum_vacuum_threshold = 50
autovacuum_vacuum_insert_threshold = -1
autovacuum_vacuum_cost_delay = 0
synchronous_commit = off
"""
TASKS = "CREATE TABLE tasks(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)"
PASS = "INSERT INTO tasks(note) SELECT repeat('z', 1900) FROM generate_series(1, 40);\nDELETE FROM tasks WHERE id IN (SELECT id FROM tasks ORDER BY id LIMIT 40);\n"


@incident("autovacuum = off", r"^vacuum setting\|autovacuum$", conf=QUEUES)
def autovacuum_off(s: Server) -> Steps:
    s.deploy(TASKS)
    s.load(1, 100, PASS, app="queue")
    s.load(1, 40, "SELECT count(note) FROM tasks;\n", app="board")
    yield None
    s.set("autovacuum", "off")
    yield None


@incident("a transaction keeps an old snapshot", r"^old snapshot\|.*analyst", conf=QUEUES)
def old_snapshot(s: Server) -> Steps:
    s.deploy(TASKS)
    s.load(1, 100, PASS, app="queue")
    analyst = s.session("analyst")
    yield None
    analyst.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM colours")
    yield None
    analyst.run("ROLLBACK")
