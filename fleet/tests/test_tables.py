"""Tables are read like PyIceberg reads them, and only rows that count are used."""

from pathlib import Path
from urllib.parse import unquote

from conftest import samples
from lake import Lake, end_lease, killed, sessions
from test_commit import address, ask, commit

from tacho_fleet.iceberg import Iceberg
from tacho_fleet.landing import Landing
from tacho_fleet.tables import Tables
from tacho_fleet.times import moment

WINDOW = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T12:00:00Z")
TOP = ("top", "server", "--minutes", *WINDOW)


def test_files_are_those_that_pyiceberg_plans(
    fleet_of_three: tuple[Lake, dict[str, Path]], tmp_path: Path
) -> None:
    commit(fleet_of_three[0], tmp_path, "--most-hours", "2")
    tables, written = Tables(address(tmp_path)), Iceberg(address(tmp_path))
    assert tables.hours() == written.hours() == Landing.open(str(fleet_of_three[0].root)).hours()
    for name in ("sample_runs", "ticks", "load_minute", "servers"):
        table = written.table(name)
        assert table is not None
        for hour in tables.hours():
            told = f"hour = '{moment(hour.begin).isoformat()}'"
            planned = {
                unquote(task.file.file_path.removeprefix("file://"))
                for task in table.scan(row_filter=told).plan_files()
            }
            assert set(tables.files(name, [hour])) == planned
            assert 0 < len(planned) < 4


def test_rows_of_others_are_left_out_until_all_are_committed(tmp_path: Path) -> None:
    """A committer is killed between the small table and `servers`."""
    lake, place = Lake(tmp_path / "lake"), tmp_path / "tables"
    lake.root.mkdir()
    for number in (1, 2):
        sessions(tmp_path / str(number), samples(number, 720, 5, 4))
        lake.ship(tmp_path / str(number), f"server{number}")
        if number == 1:
            commit(lake, place)
            before = ask(place, *TOP)
    assert Tables(address(place)).is_whole("load_minute")
    # the lease, and two steps of each of two tables
    assert killed(5, "commit", str(lake.root), "--catalog", address(place))
    assert not Tables(address(place)).is_whole("load_minute")
    assert ask(place, *TOP) == before
    end_lease(address(place))
    commit(lake, place)
    assert Tables(address(place)).is_whole("load_minute")
    assert ask(place, *TOP) == lake.ask(*TOP)
    assert [row["key"] for row in ask(place, *TOP, "--server", "server2")] == ["server2"]
