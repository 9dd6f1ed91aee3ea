"""usage: python fleet.py PLACE ENGINE...

What committing and asking take. Prints tables of Markdown; CPU and memory are those of the
processes, which the kernel tells when they end."""

import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import made

from tacho_fleet.iceberg import Iceberg

# servers, hours: what is committed; then what is asked, and whether it has samples
COMMITTED = ((10, 24), (100, 24))
ASKED = ((1000, 24, False), (10, 24, False), (100, 24, False), (100, 72, False), (100, 168, False),
         (50, 24, True))  # fmt: skip
QUESTIONS = (("top", "wait_event", "--minutes"), ("top", "server", "--minutes"),
             ("statements-history", "query_id"))  # fmt: skip
OF_SAMPLES = (("top", "wait_event"), ("timeline", "--by", "query_id"))


def run(*words: str) -> str:
    """Wall, CPU and memory of a command as cells."""
    program = shutil.which("tacho-fleet") or sys.exit("error: there is no tacho-fleet")
    started = time.monotonic()
    silent = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawn(program, [program, *words], os.environ, file_actions=silent)
    _, status, used = os.wait4(pid, 0)
    wall = time.monotonic() - started
    if status:
        sys.exit(f"error: {' '.join(words)} failed")
    return f"{wall:.2f} | {used.ru_utime + used.ru_stime:.2f} | {used.ru_maxrss // 1024}"


def files(place: Path) -> str:
    """Number of Parquet files and MB."""
    sizes = [path.stat().st_size for path in place.rglob("*.parquet")]
    return f"{len(sizes):,} | {sum(sizes) / 1e6:.2f}"


def apart(what: Callable[..., None], *told: object) -> None:
    """Runs in a process of its own: what is measured then would begin with the memory of this."""
    process = multiprocessing.get_context("spawn").Process(target=what, args=told)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"error: {what.__name__} failed")


def _landed(*told: object) -> None:
    made.landed(*told)


def _tables(catalog: str, warehouse: str, *told: object) -> None:
    made.tables(Iceberg(catalog, warehouse), *told)


def commit(root: Path, servers: int, hours: int) -> None:
    """A row of what landed, what it became, and what that took."""
    apart(_landed, root / "landing", servers, hours)
    took = run("commit", str(root / "landing"), "--catalog", f"sqlite:///{root}/catalog.db")
    sizes = f"{files(root / 'landing')} | {files(root / 'warehouse')}"
    print(f"| {servers} x {hours} h | {sizes} | {took} |", flush=True)


def ask(root: Path, engines: list[str], servers: int, hours: int, samples: bool) -> None:
    """A row for each question and engine."""
    catalog = f"sqlite:///{root}/catalog.db"
    apart(_tables, catalog, f"file://{root}/warehouse", servers, hours, samples)
    window = ("--since", made.DAY.isoformat(), "--until", made.until(hours))
    size = f"{servers:,} x {hours} h"
    for words in OF_SAMPLES if samples else QUESTIONS:
        for engine in engines:
            took = run(*words, *window, "--lake", catalog, "--engine", engine)
            print(f"| {size} | `{' '.join(words)}` | {engine} | {took} |", flush=True)


def main(place: Path, engines: list[str]) -> None:
    """Each fleet after the other."""
    print("| Landed | files | MB | tables: files | MB | s | CPU s | MB of memory |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for number, fleet in enumerate(COMMITTED):
        commit(place / f"committed{number}", *fleet)
    print("\n| Asked | Question | Engine | s | CPU s | MB of memory |\n|---|---|---|--:|--:|--:|")
    for number, fleet in enumerate(ASKED):
        root = place / f"asked{number}"
        root.mkdir(parents=True)
        ask(root, engines, *fleet)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["duckdb"])
