"""Number of objects and requests of shipping. docs and bench/results/fleet.md compute the cost of a
large fleet from them."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lake import tacho
from store import Store, proxied
from test_stores import PREFIX, said, ship, until

TABLES = ("load_minute", "sample_runs", "servers", "statements", "texts", "ticks")
SESSIONS = "time,interval_ms,pid,state,query_id,query_text"
STATEMENTS = "time,elapsed_ms,username,database,query_id,toplevel,calls"


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store of S3."""
    with Store.served() as port, proxied(Store(port)) as store:
        yield store


def record(place: Path, day: int, hours: range, *words: str) -> Path:
    """A tape with samples, statistics and a text in each of some hours."""
    minutes = [f"{hour:02}:{minute:02}" for hour in hours for minute in range(60)]
    clocks = [f"2026-03-{day:02}T{minute}:00Z" for minute in minutes]
    ticks = [f"{clock},60000,1,active,7,select 7" for clock in clocks]
    counted = [f"{clock},300000,u,d,7,1,1" for clock in clocks[::5]]
    (place / "statements.csv").write_text("\n".join([STATEMENTS, *counted]) + "\n")
    told = f"--with=statements={place}/statements.csv"
    csv = "\n".join([SESSIONS, *ticks]) + "\n"
    tacho("import", "sessions", "-", "--tape", place / "tape", told, *words, stdin=csv)
    return place / "tape"


def made(store: Store, since: int = 0) -> tuple[int, int]:
    """Number of PUT and GET after request `since`; there are no others."""
    methods = Counter(request.method for request in store.requests[since:])
    assert set(methods) <= {"PUT", "GET"}
    return methods["PUT"], methods["GET"]


def shipped(store: Store, tape: Path) -> tuple[int, int, int]:
    """Number of objects, PUT and GET of a run."""
    objects, requests = len(store.objects(PREFIX)), len(store.requests)
    code, text = said(ship(store, tape))
    assert code == 0, text
    return len(store.objects(PREFIX)) - objects, *made(store, requests)


def test_requests_of_a_run_that_ends(store: Store, tmp_path: Path) -> None:
    """A run takes one PUT and two GET beside its objects. It also takes a GET for each day with
    shipped hours, and for each hour that is not shipped yet. The first run ever, and the first of a
    server, put one more object."""
    tape = record(tmp_path, 2, range(2, 4))
    assert shipped(store, tape) == (2 * 6 + 1, 2 * 6 + 3, 5)
    assert shipped(store, tape) == (0, 1, 3)
    tables = {name.partition("/")[0] for name in store.objects(PREFIX)}
    assert tables == {*TABLES, "redaction"}
    record(tmp_path, 2, range(4, 5), "--append")
    assert shipped(store, tape) == (6, 7, 4)
    record(tmp_path, 2, range(5, 8), "--append")
    assert shipped(store, tape) == (18, 19, 6)
    record(tmp_path, 3, range(9, 10), "--append")
    assert shipped(store, tape) == (6, 7, 4)
    record(tmp_path, 4, range(9, 10), "--append")
    assert shipped(store, tape) == (6, 7, 5)
    assert shipped(store, tape) == (0, 1, 5)


def test_requests_of_who_stays(store: Store, tmp_path: Path) -> None:
    """One more hour takes its objects and a GET; a check without new hours takes no request."""
    tape = record(tmp_path, 2, range(2, 4))
    program = ship(store, tape, "--every", "1s")
    until(lambda: len(store.objects(PREFIX)) == 2 * 6 + 1)
    seen = len(store.requests)
    record(tmp_path, 2, range(4, 5), "--append")
    until(lambda: len(store.objects(PREFIX)) == 3 * 6 + 1)
    program.send_signal(signal.SIGTERM)
    assert said(program)[0] == 0
    assert made(store, seen) == (6, 1)
