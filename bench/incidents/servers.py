"""Incidents whose cause is the server, its settings, its replicas, or its host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from incident import Steps, incident
from server import BUY, Server, end


@incident("synchronous_commit = on", r"^commit setting\|synchronous_commit$", conf="synchronous_commit = off")
def synchronous_commit(s: Server) -> Steps:
    s.load(8, 400, BUY)
    yield None
    s.set("synchronous_commit", "on")
    yield lambda: s.deploy("CREATE INDEX items_price ON items(price)")


@incident("synchronous_standby_names = missing", r"^commit setting\|synchronous_standby_names$")
def standby_required(s: Server) -> Steps:
    s.load(4, 40, BUY)
    yield None
    s.set("synchronous_standby_names", "missing")
    yield None


@incident("the synchronous standby is frozen", r"^replica lost\|paris$", conf="synchronous_standby_names = ''\nwal_sender_timeout = 300s", within=3)
def replica_frozen(s: Server) -> Steps:
    with replica(s) as process_ids:
        s.set("synchronous_standby_names", "paris")
        s.load(4, 40, BUY)
        yield None
        for pid in process_ids():
            os.kill(pid, signal.SIGSTOP)
        yield None
        for pid in process_ids():
            os.kill(pid, signal.SIGCONT)


@incident("the synchronous standby is stopped", r"^replica lost\|paris$", within=3)
def replica_stopped(s: Server) -> Steps:
    with replica(s) as process_ids:
        s.set("synchronous_standby_names", "paris")
        s.load(4, 40, BUY)
        yield None
        os.kill(process_ids()[-1], signal.SIGQUIT)
        yield None


class replica:
    """A standby of a server; gives its process ids, the postmaster last."""

    def __init__(self, server: Server) -> None:
        self.server, self.data = server, Path(server.dir) / "standby"

    def __enter__(self) -> Callable[[], list[int]]:
        server, data = self.server, str(self.data)
        server.command("pg_basebackup", "-h", server.dir, "-U", "postgres", "-D", data, "-R", "-c", "fast")
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = 'host={server.dir} user=postgres application_name=paris'\n")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("port = 5499\nshared_preload_libraries = ''\nshared_buffers = 16MB\n")
        server.command("pg_ctl", "-w", "-D", data, "-l", f"{server.dir}/standby.log", "start")
        return self.process_ids

    def process_ids(self) -> list[int]:
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
        return [int(pid) for pid in children.split()] + [postmaster]

    def __exit__(self, *_: object) -> None:
        self.server.sql("ALTER SYSTEM RESET synchronous_standby_names;\nSELECT pg_reload_conf();")
        words = [self.server.program("pg_ctl"), "-m", "immediate", "-D", str(self.data), "stop"]
        subprocess.run(words, env=self.server.env, check=False, capture_output=True)


@incident("max_wal_size = 32MB", r"^writing setting\|max_wal_size$", conf="max_wal_size = 2GB\nwal_level = minimal\nmax_wal_senders = 0\nmin_wal_size = 32MB\nsynchronous_commit = off\nwal_buffers = 512kB")
def checkpoint_storm(s: Server) -> Steps:
    s.load(6, 100, "\\set c random(0, 4999)\nUPDATE orders SET amount = amount + 1 WHERE customer = :c;\n")
    yield None
    s.set("max_wal_size", "32MB")
    yield lambda: s.deploy("CREATE INDEX items_price ON items(price)")


@incident("other processes take the CPUs", r"^cpu taken\|", within=4)
def cpu_taken(s: Server) -> Steps:
    s.load(4, 15, "SELECT count(*) FROM orders WHERE amount = 5;\n")
    yield None
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(16)]
    yield None
    for other in others:
        end(other)


@incident("a backend is killed, the server recovers", r"^server started\|", within=4)
def crash(s: Server) -> Steps:
    script = "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n"
    loops = [respawning(s, script) for _ in range(2)]
    victim = s.session("victim")
    pid = int(victim.run("SELECT pg_backend_pid()").split()[0])
    yield None
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    s.wait_until_open()
    yield None
    for loop in loops:
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait()


def respawning(s: Server, script: str) -> subprocess.Popen[bytes]:
    """Clients that connect again after an error."""
    path = Path(s.dir) / "respawning.sql"
    path.write_text(script)
    command = f"while sleep 0.1; do {s.program('pgbench')} -n -h {s.dir} -U shop -f {path} -c 2 -R 20 -T 900 postgres; done"
    env = s.env | {"PGAPPNAME": "web"}
    return subprocess.Popen(["bash", "-c", command], env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
