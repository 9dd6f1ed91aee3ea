"""Ships to stores of S3, Azure and Google over a failing network and to failing stores: nothing
is lost or written twice."""

import itertools
import os
import queue
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path

import pytest
from azure import Azure
from conftest import samples
from gcs import Google
from lake import PROGRAM, Lake, answer, sessions
from store import UNSET, Fault, Request, Store, proxied

SERVER = "b/ü ~"
PREFIX = "of/us"
Running = "queue.SimpleQueue[subprocess.Popen[str]]"
# Longest wait for anything here, in s; nothing is measured.
LONG = 120


@pytest.fixture(scope="module", params=[Store, Azure, Google], ids=lambda kind: kind.scheme)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[type[Store], int]]:
    """A store for all tests of this file: its kind and port."""
    with request.param.served() as port:
        yield request.param, port


@pytest.fixture
def store(served: tuple[type[Store], int]) -> Iterator[Store]:
    """An empty store."""
    kind, port = served
    with proxied(kind(port)) as store:
        yield store


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A tape, and the objects that shipping it to a directory makes: MD5 by name."""
    place = tmp_path_factory.mktemp("s3")
    tape, lake = place / "tape", Lake(place / "lake")
    sessions(tape, samples(5, 400, 10, 4))  # of two hours
    lake.root.mkdir()
    lake.ship(tape, SERVER)
    files = [path for path in lake.root.rglob("*") if path.is_file()]
    return tape, {str(f.relative_to(lake.root)): md5(f.read_bytes()).hexdigest() for f in files}


def ship(store: Store, tape: Path, *words: str, prefix: str = PREFIX) -> subprocess.Popen[str]:
    """Starts shipping, with the secret in the environment."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    env = kept | store.environment() | {"NO_PROXY": "127.0.0.1"}
    to = store.address(prefix)
    command = [f"{PROGRAM}-ship", "--tape", str(tape), "--server", SERVER, "--to", to, *words]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def killed_at(last: int, running: Running, fault: str) -> Fault:
    """Kills a program at its last request."""

    def fault_of(number: int, _request: Request) -> str | None:
        if number != last:
            return None
        running.get().kill()
        return fault

    return fault_of


def said(program: subprocess.Popen[str]) -> tuple[int, str]:
    """Waits for the end: exit code and messages, which must not have a secret."""
    text = program.communicate(timeout=LONG)[1]
    assert not any(kind.secret in text for kind in (Store, Azure, Google))
    return program.returncode, text


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    for _ in range(LONG * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def once(store: Store) -> None:
    """Checks that no object was put twice."""
    assert sorted(set(store.puts())) == sorted(store.puts())


def test_a_store_has_what_a_directory_has(
    store: Store, shipped: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    """Names and bytes are the same; a second program ships nothing."""
    tape, wanted = shipped
    code, text = said(ship(store, tape))
    put = f"objects {len(wanted) - 1}"  # one says how it is redacted
    assert code == 0 and put in text
    assert store.objects(PREFIX) == wanted
    assert said(ship(store, tape)) == (0, "shipped hours 0, objects 0, bytes 0\n")
    once(store)
    store.download(PREFIX, tmp_path)
    lake = Lake(tmp_path)
    window = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T12:00:00Z")
    top = ("top", "wait_event", *window)
    rows = lake.ask(*top)
    assert [row.pop("servers") for row in rows] == ["1"] * len(rows)
    assert rows == answer(*top, "--tape", tape)


@pytest.mark.parametrize("fault", ["drop", "500", "409", "cut", "stall"])
def test_a_request_that_fails_once_is_made_again(
    store: Store, shipped: tuple[Path, dict[str, str]], fault: str
) -> None:
    """Every put of an object fails once, in some cases after the store has done it."""
    tape, wanted = shipped
    seen: set[str] = set()

    def first(_number: int, request: Request) -> str | None:
        is_new = request.method == "PUT" and request.path not in seen
        seen.add(request.path)
        # a stall takes as long as a request may: one is enough
        return fault if is_new and (fault != "stall" or request.path.endswith("/probe")) else None

    store.fault = first
    code, text = said(ship(store, tape, "--request-limit", "2s"))
    assert code == 0, text
    assert store.objects(PREFIX) == wanted
    once(store)


def test_a_store_that_ignores_conditions_is_refused(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """Such a store is refused before anything is put there."""
    store.fault = lambda _number, _request: "blind"
    code, text = said(ship(store, shipped[0]))
    wanted = f'error: object store "{store.address(PREFIX)}" overwrites existing objects\n'
    assert code == 1 and text.startswith(wanted)
    assert store.objects(PREFIX) == {}


def test_hours_without_a_store_are_shipped_later(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """A program that stays warns, and ships everything once the network is back."""
    tape, wanted = shipped
    store.fault = lambda _number, _request: "drop"
    program = ship(store, tape, "--every", "1s")
    assert program.stderr
    assert program.stderr.readline().startswith("warning: could not put object")
    store.fault = lambda _number, _request: None
    until(lambda: store.objects(PREFIX) == wanted)
    program.send_signal(signal.SIGTERM)
    assert said(program)[0] == 0
    once(store)


def test_a_signal_to_end_waits_for_no_answer(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """A request hangs whose limit is an hour."""
    store.fault = lambda number, _request: "stall" if number == 5 else None
    program = ship(store, shipped[0], "--request-limit", "1h")
    until(lambda: len(store.requests) == 6)
    program.send_signal(signal.SIGTERM)
    code, text = said(program)
    assert code == 1 and "request was canceled: tacho ship received a signal to stop" in text


@pytest.mark.parametrize("fault", ["drop", "cut"])
def test_killed_at_any_request(
    store: Store, shipped: tuple[Path, dict[str, str]], fault: str
) -> None:
    """With kill -9, before and after the store has done a request. The next program ships the
    rest."""
    tape, wanted = shipped
    for step in itertools.count():
        running = queue.SimpleQueue()
        store.fault = killed_at(len(store.requests) + step, running, fault)
        program = ship(store, tape, prefix=f"step{step}")
        running.put(program)
        code, text = said(program)
        store.fault = Store.fault
        if code != -signal.SIGKILL:
            break
        code, text = said(ship(store, tape, prefix=f"step{step}"))
        assert code == 0, text
        assert store.objects(f"step{step}") == wanted
    assert code == 0, text
    assert step == len(wanted) + 7  # three of the probe, and four lists
    once(store)


def test_two_at_once_ship_everything_once(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """Both end well, and no object is put twice."""
    tape, wanted = shipped
    programs = [ship(store, tape) for _ in range(2)]
    ends = [said(program) for program in programs]
    assert [code for code, _ in ends] == [0, 0], ends
    assert store.objects(PREFIX) == wanted
    once(store)


def test_a_lasting_error_is_reported_at_once(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """Without the bucket: one request, one error in one line."""
    store.drop()
    code, text = said(ship(store, shipped[0]))
    store.create()
    assert code == 1 and len(store.requests) == 1
    assert text.startswith('error: could not put object ".tacho-ship/probe": ')
    assert text.count("\n") == 1


def test_the_reason_of_a_lost_store_is_reported(
    store: Store, shipped: tuple[Path, dict[str, str]]
) -> None:
    """The error has the cause that the system names."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        store.url = f"https://127.0.0.1:{free.getsockname()[1]}"
    code, text = said(ship(store, shipped[0]))
    assert code == 1 and "Connection refused" in text
