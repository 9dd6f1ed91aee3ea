"""Asks changes() about every hour of weeks without a change.

usage: quiet.py --bin DIR --dir DIR [--server MINUTES]

Each cause that it names is a false finding. The weeks are made: sessions every ten
seconds, imported by `tacho import`. --server also records pgbench at a steady rate for some
minutes, and asks for windows of 30 seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from run import moment
from server import BASE, Server, make_template

# 2026-11-02, a Monday.
BEGIN, HOUR, DAY, TICK = 1_793_577_600, 3600, 86_400, 10
HEADER = "time,pid,backend_start,backend_type,state,wait_event_type,wait_event,query_id,application,vcpus\n"

# Session, wait and query of a sample.
Seen = tuple[int, str, int, str]
CPU, READ, COMMIT = ",", "IO,DataFileRead", "IO,WALSync"


def steady(second: int, chance: random.Random) -> Iterator[Seen]:
    """Twelve clients of a shop, all day the same."""
    for pid in range(12):
        if chance.random() < 0.2:
            yield 100 + pid, chance.choice([CPU, CPU, COMMIT, READ]), 11 + pid % 4, "web"


def office(second: int, chance: random.Random) -> Iterator[Seen]:
    """Much by day, little by night; at 1 a backup, at 2 a batch, a weekly report on Monday."""
    hour = second % DAY // HOUR
    usual = 0.05 + 0.2 * max(0, 1 - abs(hour - 13.5) / 7)
    for pid in range(12):
        if chance.random() < usual:
            yield 100 + pid, chance.choice([CPU, CPU, COMMIT, READ]), 11 + pid % 4, "web"
    if hour == 1:
        yield 200, "Client,ClientWrite", 20, "pg_dump"
    if hour == 2 and second % HOUR < 2000 + second // DAY * 100:
        for pid in range(3):
            yield 210 + pid, chance.choice([CPU, READ]), 30 + pid, "batch"
    if second // DAY == 0 and hour == 8:
        yield 220, READ, 40, "report"
    if second % (2 * HOUR) < 400:
        yield 300, "Timeout,VacuumDelay", 0, ""


def bursts(second: int, chance: random.Random) -> Iterator[Seen]:
    """Waves of requests that last some minutes, as campaigns and crawlers make them."""
    wave = random.Random(second // 420).random()
    for pid in range(16):
        if chance.random() < (0.35 if wave < 0.15 else 0.1):
            yield 100 + pid, chance.choice([CPU, CPU, COMMIT, READ]), 11 + pid % 5, "web"


def make_week(tacho: str, directory: Path, load: Callable[[int, random.Random], Iterator[Seen]]) -> Path:
    """A tape of a week of a load."""
    tape, file, chance = directory / "quiet" / load.__name__, directory / "quiet.csv", random.Random(7)
    shutil.rmtree(tape, ignore_errors=True)
    tape.parent.mkdir(exist_ok=True)
    with file.open("w") as out:
        out.write(HEADER)
        for second in range(0, 7 * DAY, TICK):
            at = moment(BEGIN + second)
            seen = list(load(second, chance))
            for pid, wait, query, application in seen:
                kind = "client backend" if query else "autovacuum worker"
                out.write(f"{at},{pid},2026-01-01T00:00:00Z,{kind},active,{wait},{query},{application},4\n")
            if not seen:
                out.write(f"{at},,,,,,,,,4\n")
    subprocess.run([tacho, "import", "sessions", str(file), "--tape", str(tape), "--interval", "10s"], check=True)
    file.unlink()
    return tape


def claims(tacho: str, tape: Path, windows: list[tuple[float, float]]) -> Counter[str]:
    """The causes that changes() names in all windows, by rule."""
    found: Counter[str] = Counter()
    for since, until in windows:
        words = [tacho, "changes", "--tape", str(tape), "--since", moment(since), "--until", moment(until), "--json"]
        rows = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        found.update(row["rule"] for row in rows if row["kind"] == "cause")
    return found


def show(name: str, days: float, windows: int, found: Counter[str]) -> None:
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(found.items())) or "–"
    print(f"| {name} | {windows} | {found.total()} | {found.total() / days:.2f} | {rules} |", flush=True)


def recorded(options: argparse.Namespace) -> tuple[Path, list[tuple[float, float]]]:
    """pgbench at a steady rate on a server."""
    make_template(options.bin, options.dir)
    s = Server(options.bin, options.dir / "steady")
    s.load(4, 60, BASE)
    begin = time.time() + 30
    time.sleep(30 + options.server * 60)
    s.stop()
    tape = options.dir / "quiet" / "recorded"
    shutil.rmtree(tape, ignore_errors=True)
    shutil.copytree(s.data / "tacho", tape)
    count = int(options.server * 2)
    return tape, [(begin + 30 * at, begin + 30 * at + 30) for at in range(1, count)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--server", type=float, default=0)
    options = parser.parse_args()
    tacho = f"{options.bin}/tacho"
    print("| Load | Windows | Causes named | A day of 24 windows | Rules |\n|---|--:|--:|--:|---|")
    for load in (steady, office, bursts):
        tape = make_week(tacho, options.dir, load)
        hours = [(float(BEGIN + at), float(BEGIN + at + HOUR)) for at in range(HOUR, 7 * DAY, HOUR)]
        show(load.__name__, 7, len(hours), claims(tacho, tape, hours))
    if options.server:
        tape, windows = recorded(options)
        show("pgbench", len(windows) / 24, len(windows), claims(tacho, tape, windows))


if __name__ == "__main__":
    main()
