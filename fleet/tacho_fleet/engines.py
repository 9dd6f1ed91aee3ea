"""The engines that can read a lake, by name."""

from collections.abc import Collection, Sequence
from importlib import import_module

import duckdb
from tacho_fleet_engines import script

from tacho_fleet import duck
from tacho_fleet.engine import Engine, Lake, Reader, columns_of, connect
from tacho_fleet.errors import FleetError
from tacho_fleet.landing import Hour, Landing

DUCKDB = "duckdb"
MINUTES = "load_minute"
# Module and class of those that are installed apart.
_OTHERS = {"clickhouse": "ClickHouse", "datafusion": "DataFusion", "spark": "Spark"}
ENGINES = (DUCKDB, *_OTHERS)


def open_engine(
    lake: Lake,
    hours: Sequence[Hour],
    memory_limit_mb: int,
    name: str = DUCKDB,
    whole: Collection[str] = (),
) -> Engine:
    """The tables of some hours of a lake, and the steps of an answer. In `whole` tables, which
    have no other rows, nobody looks for hours."""
    connection = connect(memory_limit_mb)
    connection.execute(script("duckdb", "tables"))
    reader = _reader(connection, lake, hours, name, set(whole))
    engine = Engine(connection, reader, columns_of(connection))
    for part in ("exact", "steps", "samples", "answers"):
        engine.load(part)
    for part in ("dimensions", "dimensions_by_fingerprint", "minutes", "minutes_observed"):
        engine.view(part)
    return engine


def _reader(
    connection: duckdb.DuckDBPyConnection,
    lake: Lake,
    hours: Sequence[Hour],
    name: str,
    whole: set[str],
) -> Reader:
    if name == DUCKDB:
        return duck.reader(connection, lake, hours, whole)
    if isinstance(lake, Landing):
        raise FleetError(
            f"engine {name} reads tables of Iceberg only",
            hint="Make them with tacho fleet commit, and name the catalog with --lake.",
        )
    try:
        module = import_module(f"tacho_fleet.{name}")
    except ImportError as error:
        raise FleetError(
            f"engine {name} is not installed",
            f"{error}.",
            f"Install it with pip install 'tacho-fleet[{name}]'.",
        ) from error
    return getattr(module, _OTHERS[name])(lake, hours, columns_of(connection), whole)
