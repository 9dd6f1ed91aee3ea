"""Committed files are written in parts that fit into memory, and are small."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_commit import WINDOW, Fleet, address, ask, commit, stored

from tacho_fleet import commit as committing
from tacho_fleet.commit import create
from tacho_fleet.iceberg import Iceberg
from tacho_fleet.writer import append, write

SERVER = "c"


def made(place: Path) -> Iceberg:
    """A lake that has no tables yet."""
    return Iceberg(address(place), f"file://{place}/warehouse")


def test_samples_of_an_hour_stay_in_the_order_of_their_sessions(
    fleet_of_three: Fleet, tmp_path: Path
) -> None:
    lake = fleet_of_three[0]
    commit(lake, tmp_path)
    landed = [
        row
        for path in sorted((lake.root / "sample_runs" / f"server={SERVER}").rglob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
    [file] = (tmp_path / "warehouse/tacho/sample_runs/data").rglob("*.parquet")
    rows = pq.read_table(file, partitioning=None)
    assert rows["server"].to_pylist() == sorted(rows["server"].to_pylist())
    committed = [row for row in rows.to_pylist() if row.pop("server") == SERVER and row.pop("day")]
    assert committed == landed


def test_a_batch_that_memory_has_no_room_for_is_read_in_parts(
    fleet_of_three: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts are one commit with as many files; no file is read twice."""
    lake = fleet_of_three[0]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    told = commit(lake, whole)
    monkeypatch.setattr(committing, "PART", 1)
    assert commit(lake, parts) == told
    assert stored(parts) == stored(whole)
    table = Iceberg(address(parts)).table("ticks")
    assert len(table.snapshots()) == 1
    assert len(list(table.scan().plan_files())) == len(list(lake.root.glob("ticks/**/*.parquet")))
    question = ("top", "pid", "--by", "server", "--n", "all", *WINDOW)
    assert ask(parts, *question) == ask(whole, *question)


def test_a_part_may_have_columns_that_those_before_lack(tmp_path: Path) -> None:
    table = create(made(tmp_path), "ticks", pa.table({"day": [1], "a": [1]}).schema)
    with table.transaction() as changed:
        files = [*write(changed, pa.table({"day": [1], "a": [1]}))]
        committing._widen(changed, pa.table({"day": [1], "b": [1]}).schema)
        files += write(changed, pa.table({"day": [1], "b": [2]}))
        append(changed, files, {})
    rows = Iceberg(address(tmp_path)).table("ticks").scan().to_arrow().to_pylist()
    assert sorted(rows, key=str) == [
        {"day": 1, "a": 1, "b": None},
        {"day": 1, "a": None, "b": 2},
    ]


def test_repeated_values_take_no_room_after_thousands_of_rows(tmp_path: Path) -> None:
    """Sessions of an hour are sampled at the same moments. With pages of 20,000 rows, each page
    would repeat these."""
    rows = pa.table({"day": [1] * 360_000, "slot": [n * n for n in range(3600)] * 100})
    table = create(made(tmp_path), "ticks", rows.schema)
    with table.transaction() as changed:
        files = [*write(changed, rows)]
        append(changed, files, {})
    usual = io.BytesIO()
    pq.write_table(rows, usual, compression="zstd", compression_level=9)
    assert sum(file.file_size_in_bytes for file in files) * 2 < usual.tell()
