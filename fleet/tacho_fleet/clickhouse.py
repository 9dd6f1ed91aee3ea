"""ClickHouse in this process (chDB) as the reader of a lake."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from chdb.session import Session

from tacho_fleet.engine import Stream
from tacho_fleet.filters import quoted
from tacho_fleet.foreign import Foreign, Source, columns_of_files, files_of, statements_of
from tacho_fleet.landing import Hour
from tacho_fleet.tables import Tables

# Null has the meaning of standard SQL, and columns come before aliases.
_SETTINGS = (
    "join_use_nulls = 1",
    "cast_keep_nullable = 1",
    "prefer_column_name_to_alias = 1",
    "session_timezone = 'UTC'",
    "schema_inference_mode = 'union'",
    "use_hive_partitioning = 0",
)


@cache
def _session() -> Session:
    """The session of this process."""
    session = Session()
    for setting in _SETTINGS:
        session.query(f"set {setting}")
    for statement in statements_of("clickhouse"):
        session.query(statement)
    return session


class ClickHouse(Foreign):
    """Reads the files that the catalog names: chDB's own reader of Iceberg is confined to a
    directory that cannot be set."""

    each_tick = "arrayJoin(range(assumeNotNull(ticks)))"
    nulls: ClassVar = {
        "VARCHAR": "cast(null as Nullable(String))",
        "BIGINT": "cast(null as Nullable(Int64))",
        "DECIMAL(18,2)": "cast(null as Nullable(Decimal(18, 2)))",
        "TIMESTAMP WITH TIME ZONE": "cast(null as Nullable(DateTime64(6, 'UTC')))",
    }

    def constant(self, text: str) -> str:
        """A text as a constant in its SQL, in which backslashes escape."""
        return quoted(text.replace("\\", "\\\\"))

    def keep_hours(self, path: Path) -> None:
        """Makes table `hours_that_count` from a file."""
        _session().query("drop table if exists hours_that_count")
        _session().query(
            "create table hours_that_count engine = Memory as "
            f"select * from file({quoted(str(path))}, Parquet)"
        )

    def source(self, lake: Tables, table: str, hours: Sequence[Hour]) -> Source:
        """The files; older ones may lack columns."""
        files = files_of(lake, table, hours)
        names = ",".join(file.removeprefix("/") for file in files)
        return f"file({quoted(f'/{{{names}}}')}, Parquet)", columns_of_files(files)

    def run(self, statement: str) -> None:
        """Runs a statement without a result."""
        _session().query(statement)

    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""
        _session().query(f"create or replace view {name} as {query}")

    def read(self, query: str) -> pa.Table:
        """The result of a query."""
        return _session().query(query, "ArrowTable")

    def stream(self, query: str) -> Stream:
        """The same block by block, not in memory as a whole."""
        blocks = iter(_session().send_query(query, "ArrowTable"))
        first = next(blocks, None)
        if first is None:  # its columns are unknown then
            first = self.read(query)
        return Stream(first.column_names, chain([first], blocks))
