"""The engines that can read a lake, by name."""

from importlib import import_module

import duckdb
from tacho_fleet_engines import script

from tacho_fleet import duck
from tacho_fleet.engine import Engine, Lake, Part, Reader, columns_of, connect
from tacho_fleet.errors import FleetError
from tacho_fleet.landing import Landing

DUCKDB = "duckdb"
MINUTES = "load_minute"
# Module and class of the engines that are installed separately.
_OTHERS = {"clickhouse": "ClickHouse", "datafusion": "DataFusion", "spark": "Spark"}
ENGINES = (DUCKDB, *_OTHERS)


def open_engine(lake: Lake, part: Part, memory_limit_mb: int, name: str = DUCKDB) -> Engine:
    """The tables of a part of a lake, and the steps of an answer."""
    connection = connect(memory_limit_mb)
    connection.execute(script("duckdb", "tables"))
    reader = _reader(connection, lake, part, name)
    engine = Engine(connection, reader, columns_of(connection, part.tables))
    for script_name in ("exact", "steps", "samples", "answers"):
        engine.load(script_name)
    for view in ("dimensions", "dimensions_by_fingerprint", "minutes", "minutes_observed"):
        engine.view(view)
    return engine


def _reader(connection: duckdb.DuckDBPyConnection, lake: Lake, part: Part, name: str) -> Reader:
    if name == DUCKDB:
        return duck.reader(connection, lake, part)
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
    return getattr(module, _OTHERS[name])(lake, part, columns_of(connection, part.tables))
