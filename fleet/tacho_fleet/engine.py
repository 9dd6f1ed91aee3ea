"""DuckDB in this process, with the tables of a lake and the project's SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tacho_fleet_engines import script

from tacho_fleet.errors import FleetError
from tacho_fleet.filters import quoted
from tacho_fleet.landing import Hour

TABLES = ("sample_runs", "ticks", "load_minute", "texts", "statements", "servers")

Row = dict[str, object]


@dataclass
class Engine:
    """A connection that reads some hours of a lake."""

    connection: duckdb.DuckDBPyConnection
    files: dict[str, list[str]]

    def rows(self, sql: str) -> list[Row]:
        """What a query answers; times are µs."""
        result = self._run(sql)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def arrow(self, sql: str) -> pa.Table:
        """The same as a table of Arrow."""
        return self._run(sql).to_arrow_table()

    def load(self, name: str) -> None:
        """Runs one of the project's files."""
        self.run(script("duckdb", name))

    def count(self, table: str) -> int:
        """Rows of a table."""
        return int(str(self.rows(f"select count(*) as n from {table}")[0]["n"]))

    def run(self, sql: str) -> None:
        """Runs what answers nothing."""
        self._run(sql)

    def _run(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(sql)
        except duckdb.OutOfMemoryException as error:
            raise FleetError(
                "the answer takes more memory than allowed",
                hint="Ask for a shorter window, or give more with --memory-limit-mb.",
            ) from error
        except duckdb.Error as error:
            raise self._damage() or error from error

    def _damage(self) -> FleetError | None:
        """Which object cannot be read, when that is why a query failed."""
        for path in (path for files in self.files.values() for path in files):
            try:
                pq.read_table(path, partitioning=None)
            except (OSError, ValueError) as error:
                detail = str(error).splitlines()[0].rstrip(".")
                return FleetError(
                    f'could not read object "{path}"',
                    f"{detail}.",
                    "Remove it, and its hour is shipped again.",
                )
        return None


def connect(memory_limit_mb: int) -> duckdb.DuckDBPyConnection:
    """A connection that loads nothing from elsewhere and keeps nothing."""
    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory_limit_mb}MB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Lake(Protocol):
    """Where hours are: a directory, or tables of Iceberg."""

    @property
    def options(self) -> str:
        """How their files are read."""

    def hours(self) -> list[Hour]:
        """Every hour that counts."""

    def files(self, table: str, hours: Sequence[Hour]) -> list[str]:
        """The files that may have rows of some hours."""

    def condition(self, hours: Sequence[Hour]) -> str:
        """Which of their rows are of these hours, in SQL."""


def of_lake(lake: Lake, hours: Sequence[Hour], memory_limit_mb: int) -> Engine:
    """The tables of some hours of a lake."""
    engine = Engine(connect(memory_limit_mb), {})
    engine.run(script("duckdb", "tables"))
    for table in TABLES:
        engine.files[table] = files = lake.files(table, hours)
        engine.run(view(table, files, lake.options, lake.condition(hours)))
    for name in ("exact", "steps", "samples", "answers"):
        engine.load(name)
    return engine


def view(table: str, files: list[str], options: str, condition: str) -> str:
    """SQL that makes a table of the lake of some files."""
    read = f"select * from empty_{table}"
    if files:
        names = ", ".join(quoted(file) for file in files)
        read += (
            f" union all by name select * exclude (day) from read_parquet([{names}], "
            f"union_by_name = true, {options}) where {condition}"
        )
    return f"create or replace view {table} as {read}"
