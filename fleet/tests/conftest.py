"""Fleets that several tests share."""

import random
from pathlib import Path

import pytest
from lake import CONFORMANCE, Lake, case_files, sessions, tacho

WAITS = [("IO", "DataFileRead"), ("LWLock", "WALInsert"), ("Lock", "tuple"), ("", "")]
COLUMNS = "time,interval_ms,pid,state,wait_event_type,wait_event,database,application,query_id"
# ticks, interval in s, most sessions
SERVERS = {"a": (2160, 5, 3), "b/ü ~": (1400, 5, 9), "c": (240, 30, 5)}
# Some digits spell the name of a database; one in 300 random nodes does so.
NODES = ("0000000000000a7f", "00000000000db1e5", "fdb1000000000000")

# by server: seed, seconds between readings, labels
COUNTED = {"one": (3, 60, ("team=a", "env=it's")), "two": (5, 45, ("team=a",))}
CLASSES = [f"histogram_{number}" for number in range(24)]
COUNTERS = ["time", "elapsed_ms", "username", "database", "query_id", "toplevel", "calls",
            "total_exec_time", "square_exec_time", "rows", "user_time", *CLASSES]  # fmt: skip


def samples(seed: int, ticks: int, interval: int, most: int) -> str:
    """Made-up samples from 2026-03-01 10:00 on, one tick in ten left out."""
    made = random.Random(seed)
    lines = [COLUMNS]
    for tick in range(ticks):
        if made.random() < 0.1:
            continue
        second = tick * interval
        clock = f"{10 + second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
        head = f"2026-03-01T{clock}Z,{interval * 1000}"
        active = made.randint(0, most)
        if not active:
            lines.append(f"{head},,,,,,,")
        for pid in range(1, active + 1):
            kind, event = made.choice(WAITS)
            query = made.choice([0, 11, -12, 13])
            lines.append(f"{head},{pid},active,{kind},{event},db{pid % 2},app{pid % 3},{query}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def fleet_of_three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, dict[str, Path]]:
    """A lake and the tapes of its servers."""
    place = tmp_path_factory.mktemp("fleet")
    lake = Lake(place / "lake")
    lake.root.mkdir()
    tapes = {}
    for seed, (server, shape) in enumerate(SERVERS.items()):
        tapes[server] = tape = place / f"tape{seed}"
        sessions(tape, samples(seed, *shape), NODES[seed])
        lake.ship(tape, server, "--label", f"env={'prod' if seed else 'test'}")
    return lake, tapes


@pytest.fixture(scope="session")
def fleet_of_inputs(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a server for each file of cases of `conformance/`."""
    place, inputs = tmp_path_factory.mktemp("inputs"), CONFORMANCE / "inputs"
    lake = Lake(place / "lake")
    lake.root.mkdir()
    for file in case_files():
        tape = place / file["server"]
        extra = [f"--with={name}={inputs / csv}" for name, csv in file.get("with", {}).items()]
        words = ("--tape", tape, "--node", file["node"], *extra)
        tacho("import", "sessions", inputs / file["input"], *words)
        lake.ship(tape, file["server"])
    return lake


def statistics(seed: int, step: int) -> str:
    """Made-up statistics from 10:00 on, an interval in ten left out; the last class too."""
    made = random.Random(seed)
    lines = [",".join(COUNTERS)]
    for second in range(step, 9000, step):
        if made.random() < 0.1:
            continue
        clock = f"{10 + second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
        head = f"2026-03-02T{clock}Z,{step * 1000}"
        lines.append(head + "," * (len(COUNTERS) - 2))
        for query in (0, 101, 102, 103, 104):
            calls = made.randint(0, 9)
            if not calls:
                continue
            classes = [0] * 24
            for _ in range(calls):
                classes[made.choice([0, 1, 9, 10, 11, 15, 23])] += 1
            time = made.randint(1, 10**7)
            cells = [f"user{query % 2}", f"db{query % 3}", query or "", int(query != 103)]
            cells += [calls, time, time * time // calls, calls * 3, time // 2, *classes]
            lines.append(f"{head},{','.join(map(str, cells))}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def lake_and_tapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, dict[str, Path]]:
    """Two servers."""
    place = tmp_path_factory.mktemp("statements")
    lake, tapes = Lake(place / "lake"), {}
    lake.root.mkdir()
    for server, (seed, step, labels) in COUNTED.items():
        counted, ticks = place / f"{server}.csv", ["time,interval_ms,pid,state,query_id,query_text"]
        counted.write_text(statistics(seed, step))
        for minute in range(150):
            query = 101 + minute % 3
            clock = f"{10 + minute // 60}:{minute % 60:02}:00"
            ticks.append(f"2026-03-02T{clock}Z,60000,1,active,{query},select /* {query} */  1")
        tapes[server] = tape = place / server
        words = ("import", "sessions", "-", "--tape", tape, "--with", f"statements={counted}")
        tacho(*words, stdin="\n".join(ticks) + "\n")
        lake.ship(tape, server, *(word for label in labels for word in ("--label", label)))
    return lake, tapes


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints counts like all tests of the project; a failed setup or teardown counts as failed."""
    stats = terminalreporter.stats
    bad = len(stats.get("failed", ())) + len(stats.get("error", ()))
    terminalreporter.write_line(f"{len(stats.get('passed', ()))} passed, {bad} failed")
