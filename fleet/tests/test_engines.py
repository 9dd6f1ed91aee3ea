"""Every engine gives the answers of the tapes from Iceberg tables, to the last digit.
TACHO_FLEET_ENGINES has the names of the tested engines, separated by blanks."""

import itertools
import os
import shlex
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import WAITS
from lake import Lake, sessions
from test_conformance import CASES, words_of
from test_samples import QUESTIONS as OF_SAMPLES
from test_samples import WINDOW as WINDOW_OF_SAMPLES
from test_statements import QUESTIONS as OF_STATEMENTS
from test_statements import WINDOW as WINDOW_OF_STATEMENTS

from tacho_fleet import cli

TRIED = os.environ.get("TACHO_FLEET_ENGINES", "duckdb").split()
Fleet = tuple[Lake, dict[str, Path]]
pytestmark = pytest.mark.parametrize("engine", TRIED)


def committed(lake: Lake, place: Path) -> Lake:
    """Commits all landed hours; returns the lake of tables."""
    address = f"sqlite:///{place}/catalog.db"
    cli.answer(["commit", str(lake.root), "--catalog", address])
    return Lake(address)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def inputs(fleet_of_inputs: Lake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All inputs of `conformance/` in one lake."""
    return committed(fleet_of_inputs, tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def samples(fleet_of_three: Fleet, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Lake]:
    """A directory and its tables."""
    lake = fleet_of_three[0]
    return lake, committed(lake, tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def statements(
    lake_and_tapes: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Lake, Lake]:
    """A directory and its tables."""
    lake = lake_and_tapes[0]
    return lake, committed(lake, tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize(("server", "case"), CASES)
def test_a_server_of_many_answers_as_its_tape(
    server: str, case: dict, inputs: Lake, engine: str
) -> None:
    got = inputs.ask(*words_of(case), "--server", server, "--engine", engine)
    assert len(got) == len(case["rows"])
    for row, want in zip(got, case["rows"], strict=True):
        assert {column: row[column] for column in want} == want


@pytest.mark.parametrize("question", OF_SAMPLES, ids=" ".join)
def test_samples_of_many_servers(
    samples: tuple[Lake, Lake], question: tuple[str, ...], engine: str
) -> None:
    directory, tables = samples
    asked = (*question, *WINDOW_OF_SAMPLES)
    assert tables.ask(*asked, "--engine", engine) == directory.ask(*asked)


OF_LABELS = [
    ("label:env",), ("label:team", "--bucket", "1h"), ("label:zone", "--order-by", "p95"),
    ("username", "--label", "env=it's"),
]  # fmt: skip


@pytest.mark.parametrize("question", [*OF_STATEMENTS, *OF_LABELS], ids=" ".join)
def test_statements_of_many_servers(
    statements: tuple[Lake, Lake], question: tuple[str, ...], engine: str
) -> None:
    directory, tables = statements
    asked = ("statements-history", *question, *WINDOW_OF_STATEMENTS)
    assert tables.ask(*asked, "--engine", engine) == directory.ask(*asked)


def test_what_somebody_wrote_is_a_constant(tmp_path: Path, engine: str) -> None:
    name, other = "it's \\' \"x\" \\", "its \\\\"
    lines = ["time,interval_ms,pid,state,application"]
    for pid, text in enumerate((name, other), 1):
        cell = text.replace('"', '""')
        lines.append(f'2026-03-01T10:00:00Z,60000,{pid},active,"{cell}"')
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    sessions(tmp_path / "tape", "\n".join(lines) + "\n")
    lake.ship(tmp_path / "tape", "one")
    tables = committed(lake, tmp_path)
    wanted = '"' + name.replace('"', '""') + '"'
    rows = tables.ask("top", "application", "--application", wanted, "--engine", engine)
    assert [row["key"] for row in rows] == [name]


def test_files_that_lack_a_column(fleet_of_three: Fleet, tmp_path: Path, engine: str) -> None:
    lake = Lake(tmp_path / "lake")
    shutil.copytree(fleet_of_three[0].root, lake.root)
    for path in lake.root.glob("sample_runs/**/10-*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop(["application"]), path)
    tables = Lake(f"sqlite:///{tmp_path}/catalog.db")  # type: ignore[arg-type]
    cli.answer(["commit", str(lake.root), "--catalog", str(tables.root), "--most-hours", "3"])
    asked = ("top", "application", *WINDOW_OF_SAMPLES)
    told = lake.ask(*asked)
    assert {row["key"] for row in told} == {None, "app0", "app1", "app2"}
    assert tables.ask(*asked, "--engine", engine) == told


OF_MINUTES = [
    ("aas",), ("top", "server", "--by", "wait_event"), ("top", "server", "--by", "wait_event",
    "-n", "1"), ("top", "wait_event", "--by", "server", "-n", "all"), ("timeline", "--bucket",
    "7m", "--by", "wait_event_type"), ("top", "--order-by", "peak", "--wait-event",
    "tuple,DataFileRead"), ("compare", "server", "--since-1", "2026-03-01T10:00:00Z"),
]  # fmt: skip


@pytest.mark.parametrize("question", OF_MINUTES, ids=" ".join)
def test_minutes_say_the_same(
    samples: tuple[Lake, Lake], question: tuple[str, ...], engine: str
) -> None:
    assert_minutes_say_the_same(samples[1], question, engine)


@pytest.mark.parametrize("question", OF_MINUTES, ids=" ".join)
def test_minutes_of_servers_that_are_observed_all_the_time(
    observed: Lake, question: tuple[str, ...], engine: str
) -> None:
    assert_minutes_say_the_same(observed, question, engine)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tables of three servers without a gap; one began an hour later."""
    place = tmp_path_factory.mktemp("observed")
    lake = Lake(place / "lake")
    lake.root.mkdir()
    for number, begin in enumerate((10, 10, 11)):
        lines = ["time,interval_ms,pid,state,wait_event_type,wait_event"]
        for second in range((begin - 10) * 3600, 7200, 10):
            clock = f"{10 + second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
            kind, event = WAITS[(second // 70 + number) % len(WAITS)]
            lines.append(f"2026-03-01T{clock}Z,10000,1,active,{kind},{event}")
        sessions(place / f"tape{number}", "\n".join(lines) + "\n")
        lake.ship(place / f"tape{number}", f"server{number}")
    return committed(lake, place)


def test_a_label_of_servers_is_a_dimension(
    fleet_of_three: Fleet, samples: tuple[Lake, Lake], engine: str
) -> None:
    """`a` has env=test, the others env=prod; no server has another label."""
    told = samples[1].ask("top", "label:env", *WINDOW_OF_SAMPLES, "--engine", engine)
    by_server = {
        row["key"]: Decimal(str(row["backend_seconds"]))
        for row in fleet_of_three[0].ask("top", "server", *WINDOW_OF_SAMPLES)
    }
    test = by_server.pop("a")
    assert {row["key"]: Decimal(str(row["backend_seconds"])) for row in told} == {
        "test": test,
        "prod": sum(by_server.values()),
    }
    told = samples[1].ask("top", "server", "--by", "label:zone", *WINDOW_OF_SAMPLES)
    assert {row["by_key"] for row in told} == {None}
    window = ("--since", "2026-03-01T10:10:00Z", "--until", "2026-03-01T12:00:00Z")
    asked = ("timeline", "--by", "label:env", "--bucket", "10m", *window)
    wanted = [(r["bucket_start"], r["key"], r["avg_aas"]) for r in samples[1].ask(*asked)]
    told = samples[1].ask(*asked, "--minutes", "--engine", engine)
    assert [(r["bucket_start"], r["key"], r["avg_aas"]) for r in told] == wanted


def assert_minutes_say_the_same(tables: Lake, question: tuple[str, ...], engine: str) -> None:
    """Except columns that minutes do not have."""
    window = ("--since", "2026-03-01T10:10:00Z", "--until", "2026-03-01T12:00:00Z")
    told = tables.ask(*question, *window, "--minutes", "--engine", engine)
    wanted = tables.ask(*question, *window)
    unknown = {
        name for name in wanted[0] if name.startswith(("ticks_", "peak_s", "source", "vcpu"))
    }
    assert len(told) == len(wanted)
    for row, want in zip(told, wanted, strict=True):
        assert {k: v for k, v in row.items() if k not in unknown} == {
            k: v for k, v in want.items() if k not in unknown
        }
        assert {row[name] for name in unknown} == {None, "minute"}


def test_a_query_of_ones_own_has_all_tables_and_columns(
    inputs: Lake, fleet_of_inputs: Lake, engine: str
) -> None:
    asked = {
        "ticks": "min(taken_at), max(connections), max(cost_step)",
        "sample_runs": "max(backend_start), sum(query_age_ms)",
        "locks": "max(waiter), min(time)",
        "markers": "min(kind), max(until)",
        "server": "max(metric), sum(value)",
        "servers": "max(server_name), max(timeline)",
    }
    for table, columns in asked.items():
        names = [f"{column} as c{n}" for n, column in enumerate(columns.split(", "))]
        query = f"select count(*) as n, {', '.join(names)} from {table}"
        [wanted] = fleet_of_inputs.ask("sql", query)
        assert inputs.ask("sql", query, "--engine", engine) == [wanted]
        assert wanted["n"] != "0"


# More rows than any machine has memory for; Spark returns an answer only as a whole.
ENDLESS = {
    "duckdb": "select range as n from range(1000000000000)",
    "clickhouse": "select toInt64(number) as n from numbers(1000000000000)",
    "datafusion": "select value as n from generate_series(0, 1000000000000)",
}


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_rows_of_a_query_come_before_it_has_ended(
    samples: tuple[Lake, Lake], engine: str, form: tuple[str, ...]
) -> None:
    if engine not in ENDLESS:
        pytest.skip(f"{engine} has all rows in memory")
    words = ["sql", ENDLESS[engine], "--lake", str(samples[1].root), "--engine", engine, *form]
    limited = f"ulimit -v {8 << 20}; exec tacho-fleet {shlex.join(words)}"
    command = ["bash", "-c", limited]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        told = list(itertools.islice(running.stdout, 100_001))
        running.stdout.close()
    assert len(told) == 100_001
    last = '{"n": 99999},\n' if form else "99999\n"
    assert (told[0].strip(), told[-1].lstrip()) == ("[" if form else "n", last)
    assert running.returncode == 1  # whoever reads has gone
