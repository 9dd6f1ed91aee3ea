"""Unneeded data is removed, data that counts stays, and redacted data is nowhere."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import samples
from lake import Lake, end_lease, killed, sessions, tacho
from test_commit import address, ask, commit

from tacho_fleet import cli
from tacho_fleet.commit import ORDER
from tacho_fleet.errors import FleetError
from tacho_fleet.iceberg import Iceberg
from tacho_fleet.storage import Storage, reachable

Fleet = tuple[Lake, dict[str, Path]]
QUESTIONS = (("aas",), ("top", "pid", "--n", "all"), ("servers",))
WINDOW = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T13:00:00Z")


def answers(place: Path) -> list[object]:
    """The answers of the tables."""
    return [ask(place, *question, *WINDOW) for question in QUESTIONS]


def maintain(command: str, lake: Lake, place: Path, *words: str) -> str:
    """Runs `expire` or `redact`."""
    return cli.answer([command, str(lake.root), "--catalog", address(place), *words])


def landed(lake: Lake) -> set[str]:
    """The tables that have objects."""
    return {path.parts[len(lake.root.parts)] for path in lake.root.rglob("*.parquet")}


def texts_of(*places: Path) -> set[str]:
    """Every text in every Parquet file, and in the bounds of every manifest."""
    found = set()
    for path in (path for place in places for path in place.rglob("*.parquet")):
        if path.stat().st_size:  # not a marker
            for column in pq.read_table(path, partitioning=None).columns:
                found |= {value for value in column.to_pylist() if isinstance(value, str)}
    return found


def bounds_of(place: Path) -> set[bytes]:
    """Values in manifests of the remaining snapshots, each as a whole: digits of a node may spell
    the name of a database."""
    told = set()
    lake = Iceberg(address(place))
    for table in filter(None, map(lake.table, ORDER)):
        for shot in table.snapshots():
            for manifest in shot.manifests(table.io):
                for entry in manifest.fetch_manifest_entry(table.io):
                    file = entry.data_file
                    told |= {*(file.lower_bounds or {}).values()}
                    told |= {*(file.upper_bounds or {}).values()}
    return told


@pytest.fixture
def committed(fleet_of_three: Fleet, tmp_path: Path) -> tuple[Lake, Path]:
    """A copy of the fleet, committed in three batches."""
    lake, place = Lake(tmp_path / "lake"), tmp_path / "tables"
    shutil.copytree(fleet_of_three[0].root, lake.root)
    commit(lake, place, "--most-hours", "3")
    return lake, place


def test_expiry_leaves_one_snapshot_and_the_answers(
    fleet_of_three: Fleet, committed: tuple[Lake, Path]
) -> None:
    lake, place = committed
    before = answers(place)
    kept = maintain("expire", lake, place)
    assert kept == "removed rows 0, snapshots 0, files 0, landed objects 0"
    (place / "warehouse/tacho/ticks/data/orphan.parquet").write_bytes(b"")
    # four tables with rows, of three snapshots each
    assert maintain("expire", lake, place, "--grace", "0s").startswith(
        "removed rows 0, snapshots 8, files "
    )
    assert answers(place) == before
    tables = filter(None, map(Iceberg(address(place)).table, ORDER))
    assert [len(table.snapshots()) for table in tables] == [1] * 4
    assert not (place / "warehouse/tacho/ticks/data/orphan.parquet").exists()
    assert landed(lake) == {"servers", "taken"}
    # hours that were taken are neither committed nor shipped again
    assert commit(lake, place) == "committed hours 0, rows 0, batches 0"
    for server, tape in fleet_of_three[1].items():
        lake.ship(tape, server)
    assert landed(lake) == {"servers", "taken"}
    with pytest.raises(FleetError, match="there is no history in"):
        lake.ask("aas")


@pytest.mark.parametrize("between", ["//", "/./", "/"])
def test_expiry_keeps_the_files_of_a_warehouse_however_it_is_written(
    fleet_of_three: Fleet, tmp_path: Path, between: str
) -> None:
    lake, place = Lake(tmp_path / "lake"), tmp_path / "tables"
    shutil.copytree(fleet_of_three[0].root, lake.root)
    warehouse = f"file://{tmp_path}{between}tables{between}files"
    commit(lake, place, "--most-hours", "3", "--warehouse", warehouse)
    before = answers(place)
    orphan = place / "files/tacho/ticks/data/orphan.parquet"
    orphan.write_bytes(b"")
    maintain("expire", lake, place, "--grace", "0s")
    assert answers(place) == before
    assert not orphan.exists()


def test_expiry_stops_at_a_file_outside_of_its_table(
    committed: tuple[Lake, Path], tmp_path: Path
) -> None:
    lake, place = committed
    table = Iceberg(address(place)).table("ticks")
    metadata = Path(reachable(table.metadata_location))
    known = f'"location":"{table.location()}"'
    assert known in metadata.read_text()
    (tmp_path / "other").mkdir()
    other = f'"location":"file://{tmp_path}/other"'
    metadata.write_text(metadata.read_text().replace(known, other))
    (tmp_path / "other/orphan.parquet").write_bytes(b"")
    with pytest.raises(FleetError) as told:
        maintain("expire", lake, place, "--grace", "0s")
    assert told.value.message.startswith('file "file:///')
    assert told.value.message.endswith(f'is not below "{tmp_path}/other"')
    assert (tmp_path / "other/orphan.parquet").exists()


def test_files_that_tacho_ship_removes_meanwhile_are_no_objects(
    committed: tuple[Lake, Path],
) -> None:
    lake, place = committed
    # a name without a file, as between the listing of a directory and the look at its files
    for left in (lake.root / ".tacho-ship/tacho-ship-1.tmp", lake.root / "ticks/tacho-ship-2.tmp"):
        left.symlink_to(lake.root / "nosuch")
    (lake.root / ".tacho-ship/tacho-ship-3.tmp").write_bytes(b"half")
    names = {found.name.partition("/")[0] for found in Storage.open(str(lake.root)).objects()}
    assert names == {"load_minute", "redaction", "sample_runs", "servers", "ticks"}
    maintain("expire", lake, place, "--grace", "0s")
    assert landed(lake) == {"servers", "taken"}


def test_names_of_hours_that_a_rule_of_the_store_ended_are_not_missed(
    fleet_of_three: Fleet, committed: tuple[Lake, Path]
) -> None:
    lake, place = committed
    before = answers(place)
    maintain("expire", lake, place, "--grace", "0s")
    shutil.rmtree(lake.root / "servers")
    assert commit(lake, place) == "committed hours 0, rows 0, batches 0"
    shutil.rmtree(lake.root / "taken")
    # a tape that still has these hours is shipped again, and counts as before
    for server, tape in fleet_of_three[1].items():
        lake.ship(tape, server)
    assert "sample_runs" in landed(lake)
    assert commit(lake, place) == "committed hours 0, rows 0, batches 0"
    assert answers(place) == before


def test_objects_that_are_not_committed_stay(committed: tuple[Lake, Path], tmp_path: Path) -> None:
    lake, place = committed
    sessions(tmp_path / "tape", samples(5, 720, 5, 4))
    lake.ship(tmp_path / "tape", "new")
    maintain("expire", lake, place, "--grace", "0s")
    assert len(list(lake.root.glob("sample_runs/server=new/**/*.parquet"))) == 1
    assert lake.ask("servers")[0]["server"] == "new"
    assert commit(lake, place).startswith("committed hours 1, ")


def test_expiry_killed_at_any_step_is_run_again(committed: tuple[Lake, Path]) -> None:
    lake, place = committed
    before = answers(place)
    words = ("expire", str(lake.root), "--catalog", address(place), "--grace", "0s")
    steps = 0
    # each try is killed later, because most steps are one file
    while killed(2**steps, *words):
        steps += 1
        end_lease(address(place))
        assert answers(place) == before
    assert steps > 4
    assert landed(lake) == {"servers", "taken"}
    assert answers(place) == before


@pytest.mark.parametrize(
    ("kind", "value"), [("database", "db1"), ("server", "b/ü ~"), ("username", "nobody")]
)
def test_redacted_values_are_nowhere(
    committed: tuple[Lake, Path], tmp_path: Path, kind: str, value: str
) -> None:
    lake, place = committed
    before = ask(place, "top", kind, *WINDOW, "--n", "all")
    told = {row["key"]: row["backend_seconds"] for row in before}
    assert (value in told) == (kind != "username")
    # hours that land before and afterwards are redacted as well
    for number in (5, 6):
        sessions(tmp_path / str(number), samples(number, 720, 5, 4))
        lake.ship(tmp_path / str(number), f"new{number}" if kind != "server" else value)
        said = maintain("redact", lake, place, f"--{kind}", value)
        assert said.startswith("removed rows ")
        assert value not in texts_of(lake.root, place)
        assert value.encode() not in bounds_of(place)
        assert not list(lake.root.glob("*/server=b*")) or kind != "server"
    after = ask(place, "top", kind, *WINDOW, "--n", "all", "--server", "a,c")
    rest = ask(place, "top", kind, *WINDOW, "--n", "all")
    assert value not in {row["key"] for row in (*after, *rest)}
    assert {row["key"] for row in rest} >= set(told) - {value}


TENANTS = """time,interval_ms,pid,state,database,username,application,query_id,query_text
2026-03-01T10:00:00Z,60000,1,active,tenant7,bob,app,11,select 1
2026-03-01T10:00:00Z,60000,2,active,other,al,tenant7-job,12,"select dblink('dbname=TENANT7')"
2026-03-01T10:00:00Z,60000,3,active,other,al,tenant77,13,select * from tenant77
"""
MEASURED = """time,object,xact_commit
2026-03-01T10:00:00Z,tenant7,5
2026-03-01T10:00:00Z,other,6
"""
MARKERS = """time,kind,detail,object_name,database,old_value
2026-03-01T10:00:10Z,schema changed,on tenant7.orders,later,other,
2026-03-01T10:00:20Z,schema changed,,tenant7.orders,other,
2026-03-01T10:00:30Z,settings changed,,work_mem,tenant7,
2026-03-01T10:00:40Z,settings changed,,search_path,,"public, tenant7"
2026-03-01T10:00:50Z,schema changed,,tenant77.orders,other,
"""


def test_a_database_goes_with_its_names_and_the_rest_is_reported(tmp_path: Path) -> None:
    lake, place, measured = Lake(tmp_path / "lake"), tmp_path / "tables", tmp_path / "measured.csv"
    marked = tmp_path / "markers.csv"
    lake.root.mkdir()
    measured.write_text(MEASURED)
    marked.write_text(MARKERS)
    for server in ("first", "second"):  # committed before, and landed since
        tape = tmp_path / server
        words = (
            "--tape",
            tape,
            "--with",
            f"server_database={measured}",
            "--with",
            f"markers={marked}",
        )
        tacho("import", "sessions", "-", *words, stdin=TENANTS)
        lake.ship(tape, server)
        if server == "first":
            commit(lake, place)
    said = maintain("redact", lake, place, "--database", "tenant7")
    # per server: a run, a measurement, two texts, four markers; the second has not committed
    assert said.splitlines()[0].startswith("removed rows 8, ")
    assert said.splitlines()[1:] == [
        "searched tables 7, landed objects 6: found the value",
        'found in column "application" of table "sample_runs": rows 2',
    ]
    texts = ask(place, "sql", "select distinct query_text from texts")
    assert [row["query_text"] for row in texts] == ["select * from tenant77"]
    markers = ask(place, "sql", "select distinct object_name from markers")
    assert [row["object_name"] for row in markers] == ["tenant77.orders"]
    objects = ask(place, "sql", "select distinct object from server")
    assert [row["object"] for row in objects] == ["other"]
    assert "tenant7" not in texts_of(lake.root, place)
    again = maintain("redact", lake, place, "--database", "nobody")
    assert again.splitlines()[1:] == ["searched tables 7, landed objects 6: found nothing"]


@pytest.mark.parametrize("words", [("expire",), ("redact", "--database", "db1")])
def test_a_catalog_that_was_not_committed_to_is_refused(
    committed: tuple[Lake, Path], tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Otherwise all landed hours would be committed there, and be taken."""
    lake, _ = committed
    before = sorted(lake.root.rglob("*"))
    (tmp_path / "other").mkdir()
    for catalog in (address(tmp_path / "nosuch"), address(tmp_path / "other")):
        with pytest.raises(FleetError):
            cli.answer([words[0], str(lake.root), *words[1:], "--catalog", catalog])
    Iceberg(address(tmp_path / "other"))
    with pytest.raises(FleetError, match="there are no tables in the catalog"):
        cli.answer([words[0], str(lake.root), *words[1:], "--catalog", catalog])
    assert sorted(lake.root.rglob("*")) == before


def test_redaction_killed_at_any_step_is_run_again(committed: tuple[Lake, Path]) -> None:
    lake, place = committed
    assert b"db1" in bounds_of(place)
    words = ("redact", str(lake.root), "--catalog", address(place), "--database", "db1")
    steps = 0
    while killed(2**steps, *words):
        steps += 1
        end_lease(address(place))
    assert steps > 4
    assert "db1" not in texts_of(lake.root, place)
    assert b"db1" not in bounds_of(place)
    assert {row["key"] for row in ask(place, "top", "database", *WINDOW)} == {"db0"}
