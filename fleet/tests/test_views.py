"""The views and macros for other engines give the answers of `tacho fleet`. Trino's are only
parsed, by a parser of its SQL."""

import math
import os
from pathlib import Path

import pytest
from conftest import samples
from lake import Answer, Lake, fleet, tacho

from tacho_fleet import cli, views
from tacho_fleet.engine import TABLES, Part
from tacho_fleet.engines import open_engine
from tacho_fleet.session import open_lake

Fleet = tuple[Lake, dict[str, Path]]
TRIED = [e for e in os.environ.get("TACHO_FLEET_ENGINES", "duckdb").split() if e in views.DIALECTS]
SAMPLES = ("2026-03-01 10:10:00", "2026-03-01 12:00:00")
STATEMENTS = ("2026-03-02 10:20:00", "2026-03-02 12:00:00")


def answered(engine: str, lake: str, name: str, window: tuple[str, str]) -> Answer:
    """The answer to a question in an engine with all views."""
    opened = open_lake(lake)
    reader = open_engine(opened, Part(opened.hours(), whole=TABLES), 512, engine).reader
    for _, statement in views.statements(engine, ""):
        reader.run(statement)
    dialect = views.DIALECTS[engine]
    asked = dialect.ask.format(name=name, since=window[0], until=window[1])
    return reader.read(asked).to_pylist()


def words(window: tuple[str, str]) -> tuple[str, ...]:
    """The same as options."""
    since, until = (f"{time.replace(' ', 'T')}Z" for time in window)
    return "--since", since, "--until", until


def assert_same(got: Answer, wanted: Answer, columns: dict[str, str]) -> None:
    """Compares rows in the same order; numbers must be equal after rounding."""
    assert len(got) == len(wanted) > 0
    for row, want in zip(got, wanted, strict=True):
        for own, name in columns.items():
            value, told = row[own], want[name]
            if isinstance(value, float):
                assert math.isclose(value, float(str(told)), abs_tol=5.1e-5), (own, row, want)
            else:
                assert (None if value is None else str(value)) == told, (own, row, want)


@pytest.fixture(scope="module")
def committed(
    fleet_of_three: Fleet, lake_and_tapes: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Lake]:
    """The tables of samples and of statements, by window."""
    tables = {}
    for window, (lake, _) in ((SAMPLES, fleet_of_three), (STATEMENTS, lake_and_tapes)):
        place = tmp_path_factory.mktemp("tables")
        catalog = f"sqlite:///{place}/catalog.db"
        cli.answer(["commit", str(lake.root), "--catalog", catalog])
        tables[window] = Lake(catalog)  # type: ignore[arg-type]
    return tables


Tables = dict[tuple[str, str], Lake]
QUESTIONS = [
    ("fleet_top", SAMPLES, ("top", "wait_event", "--minutes", "-n", "all"),
     {"wait_event": "key", "avg_aas": "avg_aas", "pct": "pct",
      "backend_seconds": "backend_seconds"}),
    ("fleet_load", SAMPLES, ("top", "server", "--minutes", "-n", "all"),
     {"server": "key", "avg_aas": "avg_aas"}),
    ("fleet_timeline", SAMPLES, ("timeline", "--minutes", "--bucket", "1m"),
     {"aas": "avg_aas", "servers": "servers"}),
    ("fleet_queries", SAMPLES, ("top", "query_id", "-n", "all"),
     {"avg_aas": "avg_aas", "backend_seconds": "backend_seconds"}),
    ("fleet_costs", STATEMENTS, ("statements-history", "fingerprint", "-n", "all"),
     {"calls": "calls", "total_ms": "total_exec_time", "mean_ms": "mean_exec_time",
      "p50_ms": "p50_exec_time", "p95_ms": "p95_exec_time", "p99_ms": "p99_exec_time"}),
]  # fmt: skip


@pytest.mark.parametrize("engine", TRIED)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
def test_a_question_answers_as_tacho_fleet_does(
    committed: Tables, engine: str, question: tuple
) -> None:
    name, window, asked, columns = question
    lake = committed[window]
    got = answered(engine, str(lake.root), name, window)
    assert_same(got, lake.ask(*asked, *words(window)), columns)


@pytest.mark.parametrize("engine", TRIED)
def test_view_and_servers_agree_about_coverage(committed: Tables, engine: str) -> None:
    lake = committed[SAMPLES]
    got = answered(engine, str(lake.root), "fleet_load", SAMPLES)
    wanted = {row["server"]: row for row in lake.ask("servers", *words(SAMPLES))}
    assert_same(got, [wanted[row["server"]] for row in got], {"coverage_pct": "coverage_pct"})


def test_an_hour_counts_once_in_a_directory(tmp_path: Path) -> None:
    """The views take the greatest generation, like the views of docs/ship.md."""
    lake, tape = Lake(tmp_path / "lake"), tmp_path / "tape"
    lake.root.mkdir()
    lines = samples(7, 720, 5, 4).splitlines(keepends=True)
    early = [line for line in lines if not "2026-03-01T10:30" <= line < "3"]
    late = [line for line in lines if line not in early[1:]]
    for part, append in ((early, ()), (late, ("--append",))):
        tacho("import", "sessions", "-", "--tape", tape, *append, stdin="".join(part))
        lake.ship(tape, "late")
    window = ("2026-03-01 10:00:00", "2026-03-01 11:00:00")
    engine = open_engine(open_lake(str(lake.root)), Part([]), 512)
    for table in TABLES:
        files = f"{lake.root}/{table}/**/*.parquet"
        if list(lake.root.glob(f"{table}/**/*.parquet")):
            engine.run(f"create or replace view {table} as from read_parquet('{files}')")
    for _, statement in views.statements("duckdb", ""):
        engine.run(statement)
    asked = views.DIALECTS["duckdb"].ask.format(name="fleet_top", since=window[0], until=window[1])
    got = engine.read(asked).to_pylist()
    wanted = lake.ask("top", "wait_event", "--minutes", "-n", "all", *words(window))
    assert_same(got, wanted, {"wait_event": "key", "avg_aas": "avg_aas"})


@pytest.mark.parametrize("engine", views.DIALECTS)
def test_all_of_an_engine_is_printed(engine: str) -> None:
    done = fleet("views", engine, "--tables", "lake.tacho")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(";\n") == len(list(views.statements(engine, ""))) == 10
    assert "lake.tacho.load_minute as m" in done.stdout
    assert "tables." not in done.stdout
