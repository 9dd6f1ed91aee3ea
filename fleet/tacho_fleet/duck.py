"""DuckDB in this process as the reader of a lake."""

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
from tacho_fleet.landing import HIVE_NULL, Hour, Landing, hint_of_damage

# Errors that a damaged file may cause. Others are mistakes in a query.
_OF_FILES = (
    duckdb.InvalidInputException,
    duckdb.OperationalError,
    duckdb.InternalError,
    duckdb.FatalException,
)


@dataclass
class Duck:
    """Shares the connection that makes the answer."""

    connection: duckdb.DuckDBPyConnection
    files: dict[str, list[str]]
    lake: Lake
    each_tick = "unnest(range(ticks))"

    def constant(self, text: str) -> str:
        """A text as a constant in its SQL."""
        return quoted(text)

    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""
        self._run(f"create or replace view {name} as {query}")

    def run(self, statement: str) -> None:
        """Runs a statement without a result."""
        self._run(statement)

    def read(self, query: str) -> pa.Table:
        """The result of a query."""
        return self._run(query).to_arrow_table()

    def stream(self, query: str) -> Stream:
        """The same block by block, not in memory as a whole."""
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
        """Adds columns of a query's result to a step."""
        self._run(insertion(step, columns, f"({query})"))

    def _run(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return run(self.connection, sql)
        except duckdb.Error as error:
            # the reader of Parquet also has errors without a class of their own
            may_be_damage = isinstance(error, _OF_FILES) or type(error) is duckdb.Error
            raise (self.damage() if may_be_damage else None) or error from error

    def damage(self) -> FleetError | None:
        """Names the unreadable object, if that is why a query failed."""
        for path in (path for files in self.files.values() for path in files):
            try:
                storage.read_table(path)
            except (OSError, ValueError) as error:
                detail = str(error).splitlines()[0].rstrip(".")
                hint = (
                    "Restore this file of a table from a backup: tacho ship does not put it again."
                )
                if isinstance(self.lake, Landing):
                    hint = hint_of_damage(self.lake.storage.name_of(path))
                return FleetError(f'could not read object "{path}"', f"{detail}.", hint)
        return None


def reader(connection: duckdb.DuckDBPyConnection, lake: Lake, part: Part) -> Duck:
    """The tables of a part of a lake."""
    files = {table: lake.files(table, part.hours) for table in part.tables}
    duck = Duck(connection, files, lake)
    storage.register(connection, [path for files in duck.files.values() for path in files])
    connection.execute(script("duckdb", "dialect"))
    _count(connection, part.hours)
    for table in part.tables:
        has_paths = isinstance(lake, Landing)
        is_whole = has_paths or table in part.whole
        duck.view(table, _rows(table, duck.files[table], has_paths, is_whole))
    return duck


def _count(connection: duckdb.DuckDBPyConnection, hours: Sequence[Hour]) -> None:
    """Makes table `hours_that_count`, without parameters and Arrow tables: these would import
    pandas if it is installed, which takes a tenth of a second."""
    rows = json.dumps([(hour.server, hour.node, hour.begin, hour.generation) for hour in hours])
    connection.execute(
        "create table hours_that_count as select row->>0 as server, row->>1 as node, "
        "make_timestamp((row->2)::bigint)::timestamptz as hour, (row->3)::bigint as generation "
        f"from (select unnest({quoted(rows)}::json::json[]) as row)"
    )


def _rows(table: str, files: list[str], has_paths: bool, is_whole: bool) -> str:
    """SQL of the rows of a table in files. Files in a directory have the server's name in their
    paths. In whole files all rows count."""
    read = f"select * from empty_{table}"
    if files:
        names = ", ".join(quoted(file) for file in files)
        hive = "true, hive_types = {'server': VARCHAR, 'day': DATE}" if has_paths else "false"
        join = (
            "" if is_whole else " semi join hours_that_count using (server, node, hour, generation)"
        )
        # the path has the name of a server; Hive has one name that is read as null
        name = f" replace (coalesce(server, {quoted(HIVE_NULL)}) as server)" if has_paths else ""
        read += (
            f" union all by name select * exclude (day){name} from "
            f"read_parquet([{names}], union_by_name = true, hive_partitioning = {hive}){join}"
        )
    return read
