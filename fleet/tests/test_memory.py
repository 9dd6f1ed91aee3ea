"""What a question does with memory that it has and has not."""

from pathlib import Path

import pytest

from tacho_fleet.engine import connect


def test_what_has_no_room_lies_in_a_directory_of_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connection = connect(64)
    made = "select range, hash(range) as text from range(8_000_000) order by text"
    connection.execute(f"create temp table sorted as {made}")
    spilled = connection.execute("select path from duckdb_temporary_files()").fetchall()
    assert spilled
    directory = Path(spilled[0][0]).parent
    assert directory.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []
