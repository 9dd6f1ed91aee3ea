"""Shared by readers other than DuckDB: they read Iceberg tables and return their sums as Arrow."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tacho_fleet_engines import script

from tacho_fleet.engine import BLOCK, Part, Stream, insertion, run
from tacho_fleet.filters import identifier, quoted
from tacho_fleet.landing import Hour, hours_table
from tacho_fleet.storage import copies
from tacho_fleet.tables import Tables

Columns = list[tuple[str, str]]
# A relation with rows of some hours, and perhaps others; and its columns, empty if there
# is none.
Source = tuple[str, Sequence[str]]


class Foreign(ABC):
    """An engine with the tables of some hours of a lake."""

    each_tick: str
    # null in its SQL, by type of DuckDB
    nulls: ClassVar[dict[str, str]]

    def __init__(
        self,
        lake: Tables,
        part: Part,
        columns: dict[str, Columns],
    ) -> None:
        """Registers the tables."""
        with TemporaryDirectory() as place:
            path = Path(place) / "hours.parquet"
            pq.write_table(hours_table(part.hours), path)
            self.keep_hours(path)
        for table in part.tables:
            source = self.source(lake, table, part.hours)
            self.view(table, self._rows(columns[table], source, table in part.whole))

    def constant(self, text: str) -> str:
        """A text as a constant in its SQL."""
        return quoted(text)

    @abstractmethod
    def keep_hours(self, path: Path) -> None:
        """Makes table `hours_that_count` from a file, which is removed afterwards."""

    @abstractmethod
    def source(self, lake: Tables, table: str, hours: Sequence[Hour]) -> Source:
        """The relation with the rows of a table."""

    @abstractmethod
    def run(self, statement: str) -> None:
        """Runs a statement without a result."""

    @abstractmethod
    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""

    @abstractmethod
    def read(self, query: str) -> pa.Table:
        """The result of a query."""

    def stream(self, query: str) -> Stream:
        """The same block by block. By default the whole result is in memory."""
        table = self.read(query)
        return Stream(table.column_names, iter(table.to_batches(BLOCK)))

    def fill(
        self, connection: duckdb.DuckDBPyConnection, step: str, columns: str, query: str
    ) -> None:
        """Adds columns of a query's result to a step."""
        connection.register("given", self.read(query))
        run(connection, insertion(step, columns, "given"))
        connection.unregister("given")

    def _rows(self, columns: Columns, source: Source, is_whole: bool) -> str:
        relation, known = source
        needed = dict(columns)
        others = [name for name in known if name not in needed and name != "day"]
        told = ", ".join(
            f"t.{identifier(name)} as {identifier(name)}"
            if name in known
            else f"{self.nulls[needed[name]]} as {identifier(name)}"
            for name in (*needed, *others)
        )
        if not known:
            return f"select {told} where false"
        if is_whole:
            return f"select {told} from {relation} as t"
        return (
            f"select {told} from {relation} as t join hours_that_count as h on "
            "t.server = h.server and t.node = h.node and t.hour = h.hour "
            "and t.generation = h.generation"
        )


@cache
def _place() -> TemporaryDirectory[str]:
    """The directory for copies of files, until the process ends."""
    return TemporaryDirectory(prefix="tacho-fleet-")


def files_of(lake: Tables, table: str, hours: Sequence[Hour]) -> list[str]:
    """The files of a table; files in buckets are copied, because engines have other clients."""
    return copies(lake.files(table, hours), _place().name)


def columns_of_files(files: Sequence[str]) -> list[str]:
    """The columns that at least one file has."""
    return list(dict.fromkeys(name for file in files for name in pq.read_schema(file).names))


def statements_of(engine: str) -> list[str]:
    """The statements of its dialect."""
    return [part for part in script(engine, "dialect").split(";") if part.strip()]
