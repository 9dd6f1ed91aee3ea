"""A made-up fleet in the schema of `tacho ship`, the same at each run: servers that are observed
without gaps, once a second, with four wait events and five statements. Samples are in samples.py.
Columns and types come from engines/duckdb/tables.sql: another name is an error."""

import json
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from measured import DAY
from tacho_fleet_engines import script

from tacho_fleet.commit import create
from tacho_fleet.engine import connect
from tacho_fleet.iceberg import Iceberg
from tacho_fleet.landing import SERVERS, Hour
from tacho_fleet.tables import IN_STEP
from tacho_fleet.times import HOUR, MINUTE, micros

BEGIN = micros(DAY)
EVENTS = ("CPU*", "IO:DataFileRead", "LWLock:WALInsert", "Lock:tuple")
_STEP = 5 * MINUTE
_KINDS = 8
# Class of durations: 2 to 4 ms.
_CLASS = 12

Columns = dict[str, list]


def landed(root: Path, servers: int, hours: int) -> None:
    """Puts hours of servers into a directory; `servers` last, as ship does."""
    for number in range(servers):
        for hour in range(hours):
            unit = _unit(number, hour)
            for name, columns in _columns(unit, number).items():
                path = root / unit.path(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(_table(unit, name, columns), path, compression="zstd")


def tables(lake: Iceberg, servers: int, hours: int) -> None:
    """Makes the tables that committing more servers would make. Each eighth server is like the
    first, because putting all their hours takes too long."""
    units = [[_unit(number, hour) for hour in range(hours)] for number in range(_KINDS)]
    kinds = [[(u, _columns(u, n)) for u in own] for n, own in enumerate(units)]
    in_step: dict[str, int] = {}
    for name in kinds[0][0][1]:
        own = [pa.concat_tables([_table(u, name, c[name]) for u, c in kind]) for kind in kinds]
        named = [_named(own[number % _KINDS], number) for number in range(servers)]
        rows = pa.concat_tables(named)
        table = create(lake, name, rows.schema)
        told = {IN_STEP: json.dumps(in_step)} if name == SERVERS else {}
        table.append(rows, snapshot_properties=told)
        in_step[name] = table.current_snapshot().snapshot_id


def _unit(number: int, hour: int) -> Hour:
    return Hour(f"server{number:04}", f"{number + 1:016x}", BEGIN + hour * HOUR, 7201)


def _named(rows: pa.Table, number: int) -> pa.Table:
    """The rows under the name of another server."""
    unit = _unit(number, 0)
    node = pa.repeat(pa.scalar(unit.node), rows.num_rows)
    server = pa.repeat(pa.scalar(unit.server), rows.num_rows)
    rows = rows.set_column(rows.column_names.index("node"), "node", node)
    day = rows["hour"].cast(pa.date32())
    return rows.append_column("day", day).append_column("server", server)


def _columns(unit: Hour, number: int) -> dict[str, Columns]:
    """Values of each column, by table."""
    told = {"load_minute": _minutes(unit, number), "statements": _statements(unit, number)}
    return told | {SERVERS: _server(unit)}


@cache
def _schema(table: str) -> pa.Schema:
    """All columns of a table that questions need."""
    connection = connect(64)
    connection.execute(script("duckdb", "tables"))
    return connection.execute(f"from empty_{table}").to_arrow_table().schema


def _table(unit: Hour, table: str, columns: Columns) -> pa.Table:
    """The rows of an hour, with the columns that all of them share."""
    rows = len(next(iter(columns.values())))
    same = {"node": unit.node, "hour": unit.begin, "generation": unit.generation}
    told = {name: [value] * rows for name, value in same.items()} | columns
    kinds = [_schema(table).field(name) for name in told]
    return pa.table(list(told.values()), pa.schema(kinds))


def _weight(number: int, minute: int, event: int) -> int:
    """Weight in ms: between 0 and 75 s a minute."""
    return (number * 7 + minute * 13 + event * 29) % 76 * 1000


def _minutes(unit: Hour, number: int) -> Columns:
    """A row for each minute and event, and one for the observed time."""
    first = unit.begin // MINUTE
    rows = [(m, None, None, None, None, 60_000) for m in range(first, first + 60)]
    for minute in range(first, first + 60):
        for event, name in enumerate(EVENTS):
            weight = _weight(number, minute, event)
            rows.append((minute, name.partition(":")[0], name, weight // 1000, weight, None))
    rows.sort(key=lambda row: row[0])
    names = ("minute", "wait_class", "wait_event", "samples", "weight_ms", "observed_ms")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return columns | {"minute": [minute * MINUTE for minute in columns["minute"]]}


def _statements(unit: Hour, number: int) -> Columns:
    """Five statements, every five minutes, and a row that the interval was recorded."""
    times = [unit.begin + step for step in range(_STEP, HOUR + 1, _STEP)]
    rows = [(time, query) for time in times for query in (None, 1, 2, 3, 4, 5)]

    def of(value: int | str | None) -> list:
        return [None if query is None else value for _, query in rows]

    calls = [query and (number * 3 + query * 11 + time // _STEP) % 97 + 1 for time, query in rows]
    spent = [count and count * 3 for count in calls]
    columns = {
        "time": [time for time, _ in rows],
        "elapsed_ms": [_STEP // 1000] * len(rows),
        "username": of("app"),
        "database": of("shop"),
        "query_id": [query for _, query in rows],
        "fingerprint": [query for _, query in rows],
        "toplevel": of(1),
        "calls": calls,
        "rows": calls,
        "total_exec_time_ms": spent,
    }
    return columns | {f"histogram_{n}": calls if n == _CLASS else of(0) for n in range(24)}


def _server(unit: Hour) -> Columns:
    return {
        "server_name": [unit.server],
        "host": [f"{unit.server}.example"],
        "labels": ['{"env":"prod"}'],
        "damage": [""],
    }
