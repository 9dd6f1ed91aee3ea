"""Spark on this machine as the reader of a lake."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession

from tacho_fleet.foreign import Foreign, Source, statements_of
from tacho_fleet.landing import Hour
from tacho_fleet.tables import Tables

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
_SETTINGS = {
    "spark.jars.packages": RUNTIME,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
}


@cache
def _session() -> SparkSession:
    """The session of this process."""
    builder = SparkSession.builder.master("local[2]").appName("tacho fleet")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for statement in statements_of("spark"):
        session.sql(statement)
    return session


class Spark(Foreign):
    """Reads tables with Iceberg's runtime."""

    each_tick = "explode(sequence(0L, ticks - 1))"
    nulls: ClassVar = {
        "VARCHAR": "cast(null as string)",
        "BIGINT": "cast(null as bigint)",
        "DECIMAL(18,2)": "cast(null as decimal(18, 2))",
        "TIMESTAMP WITH TIME ZONE": "cast(null as timestamp)",
    }

    def constant(self, text: str) -> str:
        """A text as a constant in its SQL, in which quotes are escaped by backslashes."""
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def keep_hours(self, path: Path) -> None:
        """Makes table `hours_that_count` from a file."""
        rows = _session().read.parquet(str(path)).toArrow()
        _session().createDataFrame(rows).createOrReplaceTempView("hours_that_count")

    def source(self, lake: Tables, table: str, hours: Sequence[Hour]) -> Source:
        """The table at the snapshot that the catalog names."""
        location = lake.location(table)
        if location is None:
            return "", []
        rows = _session().read.format("iceberg").load(location)
        rows.createOrReplaceTempView(f"all_{table}")
        return f"all_{table}", rows.columns

    def run(self, statement: str) -> None:
        """Runs a statement without a result."""
        _session().sql(statement)

    def view(self, name: str, query: str) -> None:
        """Makes a view of a query."""
        _session().sql(f"create or replace temporary view {name} as {query}")

    def read(self, query: str) -> pa.Table:
        """The result of a query."""
        return _session().sql(query).toArrow()
