"""DuckDB in this process as reader of a lake."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from tacho_fleet_engines import script

from tacho_fleet import storage
from tacho_fleet.engine import BLOCK, Lake, Part, Stream, insertion, run
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import quoted
from tacho_fleet.landing import HIVE_NULL, Hour, Landing


@dataclass
class Duck:
    """It shares the connection that makes the answer."""

    connection: duckdb.DuckDBPyConnection
    files: dict[str, list[str]]
    each_tick = "unnest(range(ticks))"

    def constant(self, text: str) -> str:
        """A text in its SQL."""
        return quoted(text)

    def view(self, name: str, query: str) -> None:
        """Gives a query a name."""
        self._run(f"create or replace view {name} as {query}")

    def run(self, statement: str) -> None:
        """Runs what answers nothing."""
        self._run(statement)

    def read(self, query: str) -> pa.Table:
        """What a query answers."""
        return self._run(query).to_arrow_table()

    def stream(self, query: str) -> Stream:
        """The same without having all of it at once."""
        reader = self._run(query).to_arrow_reader(BLOCK)
        return Stream(reader.schema.names, self._blocks(reader))

    def _blocks(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (OSError, pa.ArrowException) as error:
            raise self.damage() or error from error

    def fill(
        self, connection: duckdb.DuckDBPyConnection, step: str, columns: str, query: str
    ) -> None:
        """Adds columns of what a query answers to a step."""
        self._run(insertion(step, columns, f"({query})"))

    def _run(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return run(self.connection, sql)
        except duckdb.Error as error:
            raise self.damage() or error from error

    def damage(self) -> FleetError | None:
        """Which object cannot be read, when that is why a query failed."""
        for path in (path for files in self.files.values() for path in files):
            try:
                storage.read_table(path)
            except (OSError, ValueError) as error:
                detail = str(error).splitlines()[0].rstrip(".")
                return FleetError(
                    f'could not read object "{path}"',
                    f"{detail}.",
                    "Remove it, and its hour is shipped again.",
                )
        return None


def reader(connection: duckdb.DuckDBPyConnection, lake: Lake, part: Part) -> Duck:
    """The tables of a part of a lake."""
    duck = Duck(connection, {table: lake.files(table, part.hours) for table in part.tables})
    storage.register(connection, [path for files in duck.files.values() for path in files])
    connection.execute(script("duckdb", "dialect"))
    _count(connection, part.hours)
    for table in part.tables:
        has_paths = isinstance(lake, Landing)
        is_whole = has_paths or table in part.whole
        duck.view(table, _rows(table, duck.files[table], has_paths, is_whole))
    return duck


def _count(connection: duckdb.DuckDBPyConnection, hours: Sequence[Hour]) -> None:
    """Makes table `hours_that_count`, without parameters and tables of Arrow: these import pandas
    where it is installed, which takes a tenth of a second."""
    rows = json.dumps([(hour.server, hour.node, hour.begin, hour.generation) for hour in hours])
    connection.execute(
        "create table hours_that_count as select row->>0 as server, row->>1 as node, "
        "make_timestamp((row->2)::bigint)::timestamptz as hour, (row->3)::bigint as generation "
        f"from (select unnest({quoted(rows)}::json::json[]) as row)"
    )


def _rows(table: str, files: list[str], has_paths: bool, is_whole: bool) -> str:
    """What files have of a table. Those of a directory have names of servers in their paths; of
    whole ones all rows count."""
    read = f"select * from empty_{table}"
    if files:
        names = ", ".join(quoted(file) for file in files)
        hive = "true, hive_types = {'server': VARCHAR, 'day': DATE}" if has_paths else "false"
        join = (
            "" if is_whole else " semi join hours_that_count using (server, node, hour, generation)"
        )
        # the path says the name of a server; Hive has one that is read as null
        name = f" replace (coalesce(server, {quoted(HIVE_NULL)}) as server)" if has_paths else ""
        read += (
            f" union all by name select * exclude (day){name} from "
            f"read_parquet([{names}], union_by_name = true, hive_partitioning = {hive}){join}"
        )
    return read
