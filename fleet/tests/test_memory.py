"""Memory limits of questions."""

from pathlib import Path

import pytest

from tacho_fleet.engine import connect
from tacho_fleet.output import table_lines


def test_rows_without_room_lie_in_a_directory_of_this_user_alone(
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


def test_a_table_is_laid_out_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed lines stay; columns get wider for later rows that need it."""
    monkeypatch.setenv("COLUMNS", "80")
    blocks = [[{"n": 1, "text": "a"}], [{"n": 100, "text": "b"}, {"n": 2, "text": "x" * 90}]]
    told = table_lines(iter(blocks), [("n", "n"), ("text", "text")], wide=False)
    assert list(told) == ["n  text", "1  a", "100  b", f"  2  {'x' * 74}…"]
    assert list(table_lines([], [("n", "n")], wide=False)) == ["n", "(no rows)"]
