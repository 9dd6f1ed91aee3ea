"""The way of a question. A reader (an engine of `--engine`) has the tables of a lake and adds up
their rows, with the SQL of engines/every. DuckDB in this process makes the answer from the sums.
So weights, ranks, quotients and percentiles are computed in one place, exactly."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from tempfile import TemporaryDirectory
from typing import Protocol

import duckdb
import pyarrow as pa
from tacho_fleet_engines import script

from tacho_fleet.errors import FleetError
from tacho_fleet.filters import quoted
from tacho_fleet.landing import Hour

# Tables that questions need; a query of the user may read all.
TABLES = ("sample_runs", "ticks", "load_minute", "texts", "statements", "servers")
ALL_TABLES = (*TABLES, "locks", "markers", "server")
# Null in the SQL of engines/every.
NULL_TEXT = "as_text(cast(null as bigint))"

Row = dict[str, object]
# Most rows in memory of an answer that comes row by row.
BLOCK = 10_000


@dataclass
class Stream:
    """An answer that comes block by block."""

    columns: list[str]
    blocks: Iterator[pa.RecordBatch | pa.Table]


class Reader(Protocol):
    """An engine with the tables of a lake."""

    each_tick: str
    "SQL that makes a row for each tick of a run."

    def constant(self, text: str) -> str:
        """A text as a constant in its SQL."""

    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""

    def read(self, query: str) -> pa.Table:
        """The result of a query."""

    def run(self, statement: str) -> None:
        """Runs a statement without a result."""

    def stream(self, query: str) -> Stream:
        """The same block by block, not in memory as a whole."""

    def fill(
        self, connection: duckdb.DuckDBPyConnection, step: str, columns: str, query: str
    ) -> None:
        """Adds columns of a query's result to a table of DuckDB."""


class Lake(Protocol):
    """The place of hours: a directory, or Iceberg tables."""

    def hours(self) -> list[Hour]:
        """Every hour that counts."""

    def files(self, table: str, hours: Sequence[Hour]) -> list[str]:
        """The files that may have rows of some hours."""

    def is_whole(self, table: str) -> bool:
        """Do all rows of a table count?"""


@dataclass(frozen=True)
class Part:
    """The part of a lake to read: some hours of some tables. `whole` tables have no other rows, so
    their rows are not filtered by hour."""

    hours: Sequence[Hour]
    tables: Sequence[str] = TABLES
    whole: Collection[str] = ()


@dataclass
class Engine:
    """DuckDB with the steps of an answer, and the reader of the lake."""

    connection: duckdb.DuckDBPyConnection
    reader: Reader
    columns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def rows(self, sql: str) -> list[Row]:
        """The result of a query on steps; times are µs."""
        result = run(self.connection, sql)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def read(self, query: str) -> pa.Table:
        """The result of a query on the lake's tables."""
        return self.reader.read(query)

    def fill(self, step: str, name: str, columns: str = "*", **parts: object) -> None:
        """Fills a step with one of the queries of engines/every."""
        query = script("every", name).format(each_tick=self.reader.each_tick, **parts)
        self.reader.fill(self.connection, step, columns, query)

    def view(self, name: str, **parts: object) -> None:
        """Makes a view of one of these queries."""
        self.reader.view(name, script("every", name).format(**parts))

    def load(self, name: str) -> None:
        """Runs one of the files of engines/duckdb."""
        self.run(script("duckdb", name))

    def count(self, step: str) -> int:
        """Number of rows of a step."""
        return int(str(self.rows(f"select count(*) as n from {step}")[0]["n"]))

    def run(self, sql: str) -> None:
        """Runs a statement without a result."""
        run(self.connection, sql)

    def ask_servers(self, names: Sequence[str]) -> None:
        """Sets the servers that the answer is about."""
        told = ", ".join(f"({quoted(name)})" for name in names) or "(null)"
        self.run(
            f"insert into asked_servers select v from (values {told}) as t(v) where v is not null"
        )

    def texts(self, column: str, keys: Sequence[str]) -> dict[str, str]:
        """Texts of queries by `query_id` or `fingerprint`."""
        if not keys:
            return {}
        told = ", ".join(map(quoted, keys))
        found = self.read(script("every", "texts").format(column=column, keys=told))
        return dict(zip(found["key"].to_pylist(), found["query_text"].to_pylist(), strict=True))


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyConnection:
    """Runs SQL, with a clear error if memory is short."""
    try:
        return connection.execute(sql)
    except duckdb.OutOfMemoryException as error:
        raise FleetError(
            "the answer takes more memory than allowed",
            hint="Ask for a shorter window, or give more with --memory-limit-mb.",
        ) from error


def insertion(step: str, columns: str, relation: str) -> str:
    """SQL that adds columns of a relation to a step."""
    return f"insert into {step} by name select {columns} from {relation}"


@cache
def _spilled() -> TemporaryDirectory[str]:
    """Directory for rows that do not fit into memory: for this user only, until the process
    ends."""
    return TemporaryDirectory(prefix="tacho-fleet-")


def connect(memory_limit_mb: int) -> duckdb.DuckDBPyConnection:
    """A connection that loads no extensions and keeps no data."""
    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory_limit_mb}MB",
            "temp_directory": _spilled().name,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def columns_of(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[str]
) -> dict[str, list[tuple[str, str]]]:
    """Names and types in DuckDB of the columns that questions need, by table."""
    described = {
        table: connection.execute(f"describe empty_{table}").fetchall() for table in tables
    }
    return {table: [(row[0], row[1]) for row in rows] for table, rows in described.items()}
