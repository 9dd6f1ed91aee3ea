"""DataFusion as the reader of a lake."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datafusion import SessionContext, udf

from tacho_fleet.engine import Part, Stream
from tacho_fleet.foreign import Columns, Foreign, Source, columns_of_files, files_of
from tacho_fleet.landing import Hour
from tacho_fleet.tables import Tables

_TIME = pa.timestamp("us", "UTC")
_INT = pa.int64()
# Functions that the questions in engines/every need; DataFusion has no functions in
# SQL.
_DIALECT = (
    udf(lambda time: time.cast(_INT), [_TIME], _INT, "immutable", name="micros"),
    udf(pc.divide, [_INT, _INT], _INT, "immutable", name="idiv"),
    udf(lambda number: number.cast(pa.string()), [_INT], pa.string(), "immutable", name="as_text"),
)


class DataFusion(Foreign):
    """Reads the files that the catalog names."""

    each_tick = "unnest(range(0, ticks))"
    nulls: ClassVar = {
        "VARCHAR": "cast(null as varchar)",
        "BIGINT": "cast(null as bigint)",
        "DECIMAL(18,2)": "cast(null as decimal(18, 2))",
        "TIMESTAMP WITH TIME ZONE": "arrow_cast(null, 'Timestamp(Microsecond, Some(\"UTC\"))')",
    }

    def __init__(
        self,
        lake: Tables,
        part: Part,
        columns: dict[str, Columns],
    ) -> None:
        """Registers the tables."""
        self.context = SessionContext()
        for function in _DIALECT:
            self.context.register_udf(function)
        super().__init__(lake, part, columns)

    def keep_hours(self, path: Path) -> None:
        """Makes table `hours_that_count` from a file."""
        self.context.from_arrow(pq.read_table(path), name="hours_that_count")

    def source(self, lake: Tables, table: str, hours: Sequence[Hour]) -> Source:
        """The files; older ones may lack columns."""
        files = files_of(lake, table, hours)
        parts = []
        for number, file in enumerate(files):
            name = f"{table}_{number}"
            self.context.register_parquet(name, file)
            parts.append(f"select * from {name}")
        return f"({' union all by name '.join(parts)})", columns_of_files(files)

    def run(self, statement: str) -> None:
        """Runs a statement without a result."""
        self.context.sql(statement)

    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""
        self.context.sql(f"create or replace view {name} as {query}")

    def read(self, query: str) -> pa.Table:
        """The result of a query."""
        return self.context.sql(query).to_arrow_table()

    def stream(self, query: str) -> Stream:
        """The same block by block, not in memory as a whole."""
        reader = pa.RecordBatchReader.from_stream(self.context.sql(query))
        return Stream(reader.schema.names, iter(reader))
