"""A fleet that several tests ask."""

import random
from pathlib import Path

import pytest
from lake import Lake, sessions

WAITS = [("IO", "DataFileRead"), ("LWLock", "WALInsert"), ("Lock", "tuple"), ("", "")]
COLUMNS = "time,interval_ms,pid,state,wait_event_type,wait_event,database,application,query_id"
# ticks, interval in s, most sessions
SERVERS = {"a": (2160, 5, 3), "b/ü ~": (1400, 5, 9), "c": (240, 30, 5)}


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
        sessions(tape, samples(seed, *shape))
        lake.ship(tape, server, "--label", f"env={'prod' if seed else 'test'}")
    return lake, tapes
