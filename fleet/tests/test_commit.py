"""Landed hours become rows of Iceberg tables exactly once, whatever happens in between."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import samples
from lake import Answer, Lake, answer, end_lease, fleet, killed, sessions, stopped, tacho
from test_samples import QUESTIONS, WINDOW

from tacho_fleet import cli
from tacho_fleet.commit import BATCH
from tacho_fleet.errors import FleetError
from tacho_fleet.iceberg import Iceberg
from tacho_fleet.lease import Lease

Fleet = tuple[Lake, dict[str, Path]]
HOURS = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T12:00:00Z")


def address(place: Path) -> str:
    """The address of a catalog."""
    return f"sqlite:///{place}/catalog.db"


def commit(lake: Lake, place: Path, *words: str) -> str:
    """Commits in this process."""
    place.mkdir(exist_ok=True)
    return cli.answer(["commit", str(lake.root), "--catalog", address(place), *words])


def ask(place: Path, *words: str) -> Answer:
    """Asks a question to the tables."""
    return Lake(address(place)).ask(*words)  # type: ignore[arg-type]


def rows(place: Path) -> dict[str, int]:
    """Rows that count, by table."""
    tables = ("sample_runs", "ticks", "load_minute", "servers")
    counts = ", ".join(f"(select count(*) from {table}) as {table}" for table in tables)
    [row] = ask(place, "sql", f"select {counts}")
    return {name: int(str(count)) for name, count in row.items()}


def stored(place: Path) -> dict[str, int]:
    """Rows of the tables, whether they count or not."""
    lake = Iceberg(address(place))
    tables = ("sample_runs", "ticks", "load_minute", "servers")
    return {name: lake.table(name).scan().count() for name in tables}


@pytest.fixture(scope="module")
def tables(fleet_of_three: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the fleet, committed in several batches."""
    place = tmp_path_factory.mktemp("tables")
    said = commit(fleet_of_three[0], place, "--most-hours", "3")
    assert said.startswith("committed hours 7, rows ")
    assert said.endswith(", batches 3")
    return place


@pytest.mark.parametrize("question", [*QUESTIONS, ("servers",)], ids=" ".join)
def test_tables_answer_as_the_directory(
    fleet_of_three: Fleet, tables: Path, question: tuple[str, ...]
) -> None:
    assert ask(tables, *question, *WINDOW) == fleet_of_three[0].ask(*question, *WINDOW)


def test_nothing_new_is_no_commit(fleet_of_three: Fleet, tables: Path) -> None:
    before = {n: len(Iceberg(address(tables)).table(n).history()) for n in ("ticks", "servers")}
    assert commit(fleet_of_three[0], tables) == "committed hours 0, rows 0, batches 0"
    after = {n: len(Iceberg(address(tables)).table(n).history()) for n in ("ticks", "servers")}
    assert before == after == {"ticks": 3, "servers": 3}


def test_each_snapshot_names_its_batch(tables: Path) -> None:
    lake = Iceberg(address(tables))
    named = [
        [shot.summary[BATCH] for shot in lake.table(name).snapshots()]
        for name in ("sample_runs", "ticks", "servers")
    ]
    assert named[0] == named[1] == named[2]
    assert len(set(named[0])) == 3
    assert {len(name) for name in named[0]} == {64}


def test_a_late_generation_takes_the_place_of_its_hour(tmp_path: Path) -> None:
    lake, tape, place = Lake(tmp_path / "lake"), tmp_path / "tape", tmp_path / "tables"
    lake.root.mkdir()
    lines = samples(7, 1440, 5, 4).splitlines(keepends=True)
    early = [line for line in lines if not "2026-03-01T11:30" <= line < "3"]
    late = [line for line in lines if line not in early[1:]]
    for part, words, hours in ((early, (), 2), (late, ("--append",), 1)):
        tacho("import", "sessions", "-", "--tape", tape, *words, stdin="".join(part))
        lake.ship(tape, "late")
        assert commit(lake, place).startswith(f"committed hours {hours}, ")
        for question in (("aas",), ("top", "pid")):
            told = ask(place, *question, *HOURS)
            assert all(row.pop("servers") == "1" for row in told)
            assert told == answer(*question, *HOURS, "--tape", tape)
        assert rows(place) == stored(place)


def test_an_older_generation_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    lake, tape, place = Lake(tmp_path / "lake"), tmp_path / "tape", tmp_path / "tables"
    lake.root.mkdir()
    lines = samples(7, 720, 5, 4).splitlines(keepends=True)
    early = [line for line in lines if not "2026-03-01T10:30" <= line < "3"]
    late = [line for line in lines if line not in early[1:]]
    for part, words in ((early, ()), (late, ("--append",))):
        tacho("import", "sessions", "-", "--tape", tape, *words, stdin="".join(part))
        lake.ship(tape, "late")
    assert commit(lake, place).startswith("committed hours 1, ")
    before = ask(place, "aas", *HOURS), stored(place)
    # only the older generation is left, as after a rule of the store or from a damaged tape
    _, newer = sorted(lake.root.glob("servers/**/*.parquet"))
    newer.unlink()
    assert commit(lake, place) == "committed hours 0, rows 0, batches 0"
    assert (ask(place, "aas", *HOURS), stored(place)) == before


def test_a_committer_killed_at_any_step_neither_loses_nor_doubles(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    sessions(tmp_path / "tape", samples(8, 1440, 5, 4))
    lake.ship(tmp_path / "tape", "one")
    commit(lake, tmp_path / "whole")
    wanted, told = rows(tmp_path / "whole"), ask(tmp_path / "whole", "top", "pid", *HOURS)
    steps = 0
    while True:
        place = tmp_path / f"killed{steps + 1}"
        place.mkdir()
        if not killed(steps + 1, "commit", str(lake.root), "--catalog", address(place)):
            break
        steps += 1
        # only whole hours count until then: none, because `servers` is last, or all
        assert ask(place, "aas", *HOURS)[0]["servers"] in ("0", "1")
        end_lease(address(place))
        commit(lake, place)
        assert (rows(place), stored(place)) == (wanted, wanted)
        assert ask(place, "top", "pid", *HOURS) == told
    # the lease; and for four tables before and after they are made, and get their rows
    assert steps == 1 + 4 * 4


def test_of_two_committers_one_waits(fleet_of_three: Fleet, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    place.mkdir()
    engine = Iceberg(address(place), f"file://{place}/warehouse").catalog.engine
    first, second = Lease(engine), Lease(engine)
    first.acquire(0)
    first.renew()
    with pytest.raises(FleetError) as told:
        second.acquire(0)
    assert told.value.message == "another committer is at work"
    with pytest.raises(FleetError):
        commit(fleet_of_three[0], place)
    first.release()
    second.acquire(0)
    with pytest.raises(FleetError) as told:
        first.renew()
    assert told.value.message == "another committer has taken over"
    second.release()
    assert commit(fleet_of_three[0], place).startswith("committed hours 7, ")


def test_a_committer_that_sleeps_beyond_its_lease_doubles_nothing(tmp_path: Path) -> None:
    """A committer is stopped at any step, and continued once another has committed the hours."""
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    sessions(tmp_path / "tape", samples(8, 1440, 5, 4))
    lake.ship(tmp_path / "tape", "one")
    commit(lake, tmp_path / "whole")
    wanted = rows(tmp_path / "whole")
    ends = []
    for step in range(1, 18):
        place = tmp_path / f"stopped{step}"
        place.mkdir()
        words = ("commit", str(lake.root), "--catalog", address(place))
        with stopped(step, *words) as sleeping:
            end_lease(address(place))
            commit(lake, place)
        ends.append((sleeping.returncode, (sleeping.stderr or "").partition("\n")[0]))
        assert (rows(place), stored(place)) == (wanted, wanted)
    # there was nothing to do yet, and nothing left to do
    first, *others, last = ends
    assert first == last == (0, "")
    assert set(others) == {(1, "error: another committer has taken over")}


def test_a_lease_of_somebody_who_was_killed_ends(tmp_path: Path) -> None:
    engine = Iceberg(address(tmp_path), f"file://{tmp_path}/warehouse").catalog.engine
    Lease(engine, seconds=-1).acquire(0)
    Lease(engine).acquire(0)


def test_a_damaged_object_is_named_and_commits_nothing_of_its_hour(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    sessions(tmp_path / "tape", samples(9, 720, 5, 4))
    lake.ship(tmp_path / "tape", "broken")
    [damaged] = lake.root.glob("ticks/**/10-*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(FleetError) as told:
        commit(lake, tmp_path / "tables")
    assert told.value.message == f'could not read object "{damaged}"'
    hour = f"server=broken/day=2026-03-01/{damaged.name}"
    assert told.value.hint == (
        f'If its server still has this hour, remove all objects "*/{hour}" and restart tacho ship, '
        "which puts them again."
    )
    assert ask(tmp_path / "tables", "aas")[0]["source"] == "none"


def test_all_objects_of_a_damaged_hour_are_put_again(tmp_path: Path) -> None:
    """The hint for damage is true: one object alone is not put again."""
    lake, place = Lake(tmp_path / "lake"), tmp_path / "tables"
    lake.root.mkdir()
    sessions(tmp_path / "tape", samples(9, 720, 5, 4))
    lake.ship(tmp_path / "tape", "broken")
    whole = {path: path.read_bytes() for path in lake.root.rglob("*.parquet")}
    [damaged] = lake.root.glob("ticks/**/10-*.parquet")
    damaged.unlink()
    lake.ship(tmp_path / "tape", "broken")
    assert not damaged.exists()
    for path in lake.root.glob(f"*/server=broken/day=2026-03-01/{damaged.name}"):
        path.unlink()
    lake.ship(tmp_path / "tape", "broken")
    assert {path: path.read_bytes() for path in lake.root.rglob("*.parquet")} == whole
    assert commit(lake, place).startswith("committed hours 1, ")


def test_a_damaged_file_of_a_table_has_another_hint(fleet_of_three: Fleet, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    commit(fleet_of_three[0], place)
    damaged, *_ = sorted((place / "warehouse/tacho/sample_runs/data").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(FleetError) as told:
        ask(place, "top", *WINDOW)
    assert told.value.message == f'could not read object "{damaged}"'
    assert told.value.hint == (
        "Restore this file of a table from a backup: tacho ship does not put it again."
    )


def test_a_late_generation_may_bring_a_new_column(tmp_path: Path) -> None:
    lake, tape, place = Lake(tmp_path / "lake"), tmp_path / "tape", tmp_path / "tables"
    lake.root.mkdir()
    lines = samples(7, 1440, 5, 4).splitlines(keepends=True)
    early = [line for line in lines if not "2026-03-01T11:30" <= line < "3"]
    late = [line for line in lines if line not in early[1:]]
    tacho("import", "sessions", "-", "--tape", tape, stdin="".join(early))
    lake.ship(tape, "late")
    for path in lake.root.glob("sample_runs/**/*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop(["application"]), path)
    assert commit(lake, place).startswith("committed hours 2, ")
    tacho("import", "sessions", "-", "--tape", tape, "--append", stdin="".join(late))
    lake.ship(tape, "late")
    assert commit(lake, place).startswith("committed hours 1, ")
    assert rows(place) == stored(place)
    last = ("--since", "2026-03-01T11:00:00Z", "--until", "2026-03-01T12:00:00Z")
    told = ask(place, "top", "application", *last)
    assert all(row.pop("servers") == "1" for row in told)
    assert told == answer("top", "application", *last, "--tape", tape)
    assert [row["key"] for row in ask(place, "top", "application", *HOURS)].count(None) == 1


def test_a_table_without_rows_of_an_older_generation_is_no_warning(tmp_path: Path) -> None:
    lake, tape, catalog = Lake(tmp_path / "lake"), tmp_path / "tape", address(tmp_path)
    lake.root.mkdir()
    columns = "time,interval_ms,pid,state,query_id,query_text\n"
    row = "2026-03-01T{}:00Z,60000,1,active,{}\n"
    # at first there is no text of 11 o'clock
    for clock, query in (("10:00", "7,select 7"), ("11:00", ","), ("11:30", "7,select 7")):
        csv = columns + row.format(clock, query)
        append = ("--append",) if tape.exists() else ()
        tacho("import", "sessions", "-", "--tape", tape, *append, stdin=csv)
        lake.ship(tape, "a")
        done = fleet("commit", lake.root, "--catalog", catalog)
        assert (done.returncode, done.stderr) == (0, "")
    [count] = Lake(catalog).ask("sql", "select count(*) as texts from texts")  # type: ignore[arg-type]
    assert count == {"texts": "2"}
