"""Plays incidents, keeps their tapes, and compares what changes() finds with what was done.

usage: run.py --bin DIR --dir DIR [--jobs N] [--judge] [--normal S] [--bad S] [NAME]...
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import clients
import locks
import plans
import servers
from incident import INCIDENTS, Incident
from server import BASE, Server, make_template

Row = dict[str, Any]

# Modules that enter their incidents when they are imported.
PLAYS = (plans, locks, clients, servers)


def innocents(s: Server, number: int) -> list[Any]:
    """Changes that no query of an incident depends on, another first for each incident."""
    changes = [
        lambda: s.deploy(f"ALTER TABLE colours ADD COLUMN c{number} int"),
        lambda: s.set("log_min_duration_statement", str(5000 + number)),
        lambda: s.deploy(f"CREATE INDEX ON news(id); CREATE TABLE page{number}(id int)"),
        lambda: s.sql("ANALYZE colours", user="deploy", app="migrate"),
        lambda: s.set("default_statistics_target", str(101 + number % 20)),
        lambda: s.deploy("GRANT SELECT ON news TO seller"),
    ]
    return [changes[(number + at) % len(changes)] for at in range(3)]


def play(one: Incident, number: int, options: argparse.Namespace) -> Row:
    """Plays an incident; gives what is known of it."""
    scratch = options.dir / one.name
    s = Server(options.bin, scratch, one.conf)
    try:
        s.load(2, 20, BASE)
        early, late, near = innocents(s, number)
        steps = one.play(s)
        next(steps)
        time.sleep(options.normal / 2)
        early()
        time.sleep(options.normal / 4)
        late()
        time.sleep(options.normal / 4)
        begin = time.time()
        own = next(steps)
        end = time.time()
        (own or near)()
        time.sleep(options.bad)
        until = time.time()
        next(steps, None)
        time.sleep(2)
    finally:
        s.stop()
        kept = options.dir / "tapes" / one.name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(s.data / "tacho", kept)
    shutil.rmtree(scratch)
    return {"incident": one.name, "begin": begin, "end": end, "until": until}



def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def findings(played: Row, options: argparse.Namespace) -> list[Row]:
    """The causes and notes that changes() has for the time around an incident."""
    words = [f"{options.bin}/tacho", "changes", "--tape", str(options.dir / "tapes" / played["incident"])]
    words += ["--since", moment(played["begin"] - 3), "--until", moment(played["until"]), "--tz", "UTC", "--json"]
    answers = {subprocess.run(words, check=True, capture_output=True, text=True).stdout for _ in range(2)}
    assert len(answers) == 1, "the same window twice gives two answers"
    rows: list[Row] = json.loads(answers.pop(), parse_float=Decimal)
    parts = [row for row in rows if row["kind"] == "effect" and row["unit"] == "sessions"]
    sums = {dimension: [0, 0] for dimension in (row["dimension"] for row in parts)}
    for row in parts:
        sums[row["dimension"]][0] += row["difference"]
        sums[row["dimension"]][1] += row.get("pct") or 0
    assert len({tuple(each) for each in sums.values()}) == 1, f"dimensions add up to {sums}"
    return [row for row in rows if row["kind"] != "effect"]


def named(row: Row) -> str:
    """RULE|OBJECT of a finding."""
    thing = row.get("key") or ""
    if row.get("dimension") in ("clients", "statement"):
        thing = row.get("query_text") or ""
    if row.get("dimension") in ("blocker", "snapshot"):
        thing = f"{thing} {row.get('username') or ''} {row.get('application') or ''}"
    return f"{row.get('rule')}|{' '.join(str(thing).split())}"


def judged_off(row: Row, played: Row) -> float | None:
    """Seconds by which the time of a finding lies outside the time of the cause."""
    if not row.get("started"):
        return None
    started = datetime.fromisoformat(row["started"]).timestamp()
    return started - min(max(started, played["begin"]), played["end"])


def judge(one: Incident, played: Row, options: argparse.Namespace) -> Row:
    """The place of the cause in the list, and how far off its time is."""
    found = findings(played, options)
    verdict = {**played, "cause": one.cause, "place": None, "off": None, "first": [named(row)[:70] for row in found[:3]]}
    for place, row in enumerate(found, 1):
        off = judged_off(row, played)
        if off is None or not re.search(one.finds, named(row)):
            continue
        verdict["off"] = round(off, 1)
        if abs(off) <= one.within:
            verdict["place"] = place
            break
    return verdict


def table(verdicts: list[Row]) -> str:
    """The table of docs/changes.md, and its sums."""
    lines = ["| Incident | Cause | Place | Seconds off | First finding |", "|---|---|--:|--:|---|"]
    for one in verdicts:
        place, off = one["place"] or "–", "–" if one["off"] is None else f"{one['off']:.1f}"
        first = (one["first"] or ["nothing"])[0].replace("|", ": ")
        lines.append(f"| `{one['incident']}` | {one['cause']} | {place} | {off} | {first} |")
    first = sum(one["place"] == 1 for one in verdicts)
    three = sum(one["place"] is not None and one["place"] <= 3 for one in verdicts)
    return "\n".join([*lines, "", f"{len(verdicts)} incidents: cause first {first}, among the first three {three}"])


def run_one(name: str, options: argparse.Namespace) -> None:
    file = options.dir / "played" / f"{name}.json"
    if options.judge or (file.exists() and not options.again):
        return
    try:
        played = play(INCIDENTS[name], list(INCIDENTS).index(name), options)
        file.write_text(json.dumps(played) + "\n")
        print(f"{name}: played, place {judge(INCIDENTS[name], played, options)['place']}", flush=True)
    except Exception:  # an incident that fails does not end the others
        print(f"{name}: {traceback.format_exc()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--normal", type=float, default=28)
    parser.add_argument("--bad", type=float, default=24)
    parser.add_argument("--judge", action="store_true", help="ask the tapes that are kept again")
    parser.add_argument("--again", action="store_true", help="play incidents that were played before")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    unknown = set(options.names) - set(INCIDENTS)
    if unknown:
        parser.error(f"no such incident: {', '.join(sorted(unknown))}")
    names = options.names or list(INCIDENTS)
    for each in ("played", "tapes"):
        (options.dir / each).mkdir(parents=True, exist_ok=True)
    if not options.judge:
        make_template(options.bin, options.dir)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda name: run_one(name, options), names))
    verdicts = []
    for name in names:
        file = options.dir / "played" / f"{name}.json"
        if file.exists():
            verdicts.append(judge(INCIDENTS[name], json.loads(file.read_text()), options))
    (options.dir / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in verdicts))
    print(table(verdicts))


if __name__ == "__main__":
    main()
