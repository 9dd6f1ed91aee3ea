"""A private server with a small shop in it: sessions, loads, changes."""

from __future__ import annotations

import itertools
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

CONF = """
listen_addresses = ''
shared_preload_libraries = 'tacho'
tacho.sample_interval = 200ms
tacho.flush_interval = 1s
tacho.statements_interval = 1s
tacho.server_interval = 1s
tacho.max_cpu = 0
shared_buffers = 64MB
max_connections = 120
max_prepared_transactions = 5
max_parallel_workers_per_gather = 0
autovacuum_naptime = 5s
logging_collector = off
"""

SHOP = """
CREATE EXTENSION tacho;
CREATE ROLE shop SUPERUSER LOGIN;
CREATE ROLE deploy SUPERUSER LOGIN;
CREATE ROLE seller LOGIN;
CREATE TABLE orders AS SELECT n AS id, n % 5000 AS customer, n % 97 AS amount, repeat('x', 40) AS note
  FROM generate_series(1, 200000) n;
CREATE INDEX orders_customer ON orders(customer);
CREATE TABLE items(id int PRIMARY KEY, price int, stock int);
INSERT INTO items SELECT n, n % 100, 1000 FROM generate_series(1, 20000) n;
CREATE TABLE accounts(id int PRIMARY KEY, n int);
INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100) n;
CREATE TABLE visits(id bigint GENERATED ALWAYS AS IDENTITY, page int, at timestamptz DEFAULT now());
INSERT INTO visits(page) SELECT n % 100 FROM generate_series(1, 20000) n;
CREATE TABLE jobs AS SELECT n AS id, 'done' AS state, n % 10 AS worker FROM generate_series(1, 150000) n;
INSERT INTO jobs SELECT n, 'new', 0 FROM generate_series(1, 10) n;
CREATE INDEX jobs_state ON jobs(state);
CREATE TABLE colours(id int, name text);
CREATE TABLE news(id int, title text);
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO seller;
VACUUM ANALYZE;
"""

# The work that goes on in every incident: items are read, visits are written.
BASE = """\\set i random(1, 20000)
SELECT price FROM items WHERE id = :i;
INSERT INTO visits(page) VALUES (:i % 100);
"""

# Work of several incidents: the orders of a customer are read, an item is sold.
LOOKUP = "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n"
BUY = "\\set i random(1, 20000)\nUPDATE items SET stock = stock - 1 WHERE id = :i;\n"


class Session:
    """A psql that stays open."""

    def __init__(self, server: Server, user: str, app: str) -> None:
        self.count = itertools.count(1)
        self.psql = subprocess.Popen(
            [server.program("psql"), "-XAtq", "-h", server.dir, "-U", user, "postgres"],
            env=server.env | {"PGAPPNAME": app},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def send(self, sql: str) -> str:
        """Sends statements and does not wait; gives the word that follows their output."""
        word = f"end-of-{next(self.count)}"
        assert self.psql.stdin
        self.psql.stdin.write(f"{sql};\n\\echo {word}\n".encode())
        self.psql.stdin.flush()
        return word

    def run(self, sql: str, seconds: float = 60) -> str:
        """Sends statements and waits for their output."""
        return self.wait(self.send(sql), seconds)

    def wait(self, word: str, seconds: float = 60) -> str:
        """The output up to a word."""
        assert self.psql.stdout
        out, deadline = b"", time.monotonic() + seconds
        while word.encode() + b"\n" not in out:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.psql.stdout], [], [], left)[0]:
                raise TimeoutError(f"no {word} after {seconds} s: {out!r}")
            more = os.read(self.psql.stdout.fileno(), 65536)
            if not more:
                raise EOFError(f"psql has ended: {out!r}")
            out += more
        return out.decode()


class Server:
    """A server in a directory of its own, copied from a template."""

    def __init__(self, bin_dir: str, directory: Path, conf: str = "") -> None:
        self.bin, self.dir, self.data = bin_dir, str(directory), directory / "data"
        self.env = {
            "PATH": f"{bin_dir}:/usr/bin:/bin",
            "PGUSER": "shop",
            "PGDATABASE": "postgres",
            "LC_ALL": "C.UTF-8",
            "HOME": str(directory),
        }
        self.loads: list[subprocess.Popen[bytes]] = []
        self.scripts = itertools.count(1)
        template = directory.parent / "template"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if template.exists():
            shutil.copytree(template, self.data, symlinks=True)
        else:
            self.command("initdb", "-A", "trust", "-D", str(self.data), "-U", "postgres")
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(CONF + f"tacho.program = '{bin_dir}/tacho'\n")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{directory}'\n{conf}\n")
        self.data.chmod(0o700)
        self.start()

    def program(self, name: str) -> str:
        return f"{self.bin}/{name}"

    def command(self, name: str, *words: str) -> None:
        log = Path(self.dir) / "commands.log"
        with log.open("ab") as file:
            subprocess.run([self.program(name), *words], env=self.env, check=True, stdout=file, stderr=file)

    def start(self) -> None:
        self.command("pg_ctl", "-w", "-D", str(self.data), "-l", f"{self.dir}/server.log", "start")

    def stop(self) -> None:
        for load in self.loads:
            end(load)
        self.command("pg_ctl", "-w", "-m", "fast", "-D", str(self.data), "stop")

    def sql(self, sql: str, user: str = "postgres", app: str = "psql") -> str:
        """Statements of a session of their own."""
        words = [self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.dir, "-U", user, "-f", "-", "postgres"]
        # A change must not wait for a replica that an incident has taken away.
        env = self.env | {"PGAPPNAME": app, "PGOPTIONS": "-c synchronous_commit=local"}
        done = subprocess.run(words, input=sql, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{sql}: {done.stderr}")
        return done.stdout.strip()

    def wait_until_open(self, seconds: float = 60) -> None:
        """Waits until the server takes connections."""
        deadline = time.monotonic() + seconds
        while subprocess.run([self.program("pg_isready"), "-q", "-h", self.dir], env=self.env, check=False).returncode != 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server takes no connections after {seconds} s")
            time.sleep(0.1)

    def deploy(self, sql: str) -> None:
        """A change by the role and the application that release."""
        self.sql(sql, user="deploy", app="migrate")

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the server, and waits until its processes may have it."""
        self.sql(f"ALTER SYSTEM SET {name} = '{value}';\nSELECT pg_reload_conf();")

    def session(self, app: str, user: str = "shop") -> Session:
        return Session(self, user, app)

    def load(self, clients: int, rate: float, script: str, *options: str, app: str = "web", user: str = "shop") -> subprocess.Popen[bytes]:
        """Starts clients that run a script, `rate` transactions a second in all (0: as many as they can)."""
        path = Path(self.dir) / f"load{next(self.scripts)}.sql"
        path.write_text(script)
        words = [self.program("pgbench"), "-n", "-h", self.dir, "-U", user, "-f", str(path), "-c", str(clients), "-T", "900"]
        words += ["-R", str(rate)] if rate else []
        with path.with_suffix(".log").open("wb") as log:
            started = subprocess.Popen([*words, *options, "postgres"], env=self.env | {"PGAPPNAME": app}, stdout=log, stderr=log)
        self.loads.append(started)
        return started


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that we started."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


def make_template(bin_dir: str, directory: Path) -> None:
    """The shop, stopped, for servers to copy."""
    if (directory / "template").exists():
        return
    server = Server(bin_dir, directory / "making")
    server.sql(SHOP)
    server.stop()
    shutil.rmtree(server.data / "tacho", ignore_errors=True)
    conf = server.data / "postgresql.conf"
    lines = [line for line in conf.read_text().splitlines() if not line.startswith("unix_socket_directories")]
    conf.write_text("\n".join(lines) + "\n")
    server.data.rename(directory / "template")
