"""What statements have cost on all servers: `statements-history`."""

from dataclasses import dataclass

from tacho_fleet.engine import Engine, Row
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import Filter, identifier, quoted
from tacho_fleet.load import MAX_ROWS, OTHER
from tacho_fleet.output import interval_text
from tacho_fleet.times import Window

FILTERS = ("query_id", "fingerprint", "database", "username", "toplevel")
# What a line of the answer is: the reader's key, or one column.
STATEMENT = "statement"
DIMENSIONS = (STATEMENT, "query_id", "fingerprint", "database", "username", "server")
EVICTED = "(evicted)"
_ORDERS = {
    "time": "total_exec_time_ms",
    "cpu": "user_time_ms + system_time_ms",
    "blocks": "shared_blks_hit + shared_blks_read",
}
_MEASURED = {
    "mean": "lines_by_mean()",
    "p95": "lines_by_percentile(95)",
    "p99": "lines_by_percentile(99)",
}
_KEY = ("query_id", "database", "username", "toplevel")
_MEASURES = (
    "pct", "calls_per_second", "mean_exec_time", "stddev_exec_time", "p50_exec_time",
    "p95_exec_time", "p99_exec_time",
)  # fmt: skip
COLUMNS = ("period_start", "period_end", "key", *_KEY, "query_text", "grain", "coverage_pct",
           *_MEASURES)  # fmt: skip
SHOWN = (("period_start", "period_start"), ("key", "key"), ("calls", "calls"),
         ("total_exec_time", "ms"), ("pct", "pct"), ("mean_exec_time", "mean"),
         ("p95_exec_time", "p95"), ("query_text", "query"))  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is asked about the statistics of a window."""

    window: Window
    servers: tuple[str, ...]
    dimension: str
    filters: tuple[tuple[str, Filter], ...]
    bucket: int | None
    n: int | None
    order_by: str


def counters(engine: Engine) -> list[str]:
    """The columns with sums: of the table, in its order, as readers call them."""
    names = [str(row["column_name"]) for row in engine.rows("describe statements")]
    first = names.index("toplevel") + 1
    hidden = ("square_", "histogram_", "fingerprint", "day", "generation")
    return [name.removesuffix("_ms") for name in names[first:] if not name.startswith(hidden)]


def history(engine: Engine, asked: Question) -> tuple[list[str], list[Row]]:
    """Columns and rows: in each period the lines that cost most in the window."""
    shown = counters(engine)
    strength, ranked = _order(asked.order_by, shown)
    engine.load("statements")
    _prepare(engine, asked)
    engine.run("create or replace table line_sums as from sums_by_line()")
    engine.run(
        "insert into statement_lines by name select line, row_number() over ("
        f"order by coalesce({strength}, 0) desc, line.number nulls first, line.key, "
        "line.database nulls first, line.username nulls first, line.toplevel) as place "
        f"from line_sums {ranked}"
    )
    n = asked.n or engine.count("statement_lines")
    engine.run(
        f"create or replace table counted_by_place as select c.*, least(place, {n + 1}) as place "
        "from counted as c join statement_lines using (line)"
    )
    engine.run("create or replace table place_sums as from sums_by_place()")
    rows = [_row(row, n) for row in engine.rows(_rows(asked, shown, n))]
    return [*COLUMNS, *shown, "servers"], rows


def _prepare(engine: Engine, asked: Question) -> None:
    """Fills the steps up to what was counted and recorded."""
    origin, width = _buckets(asked)
    window = asked.window
    names = ", ".join(f"({quoted(name)})" for name in asked.servers) or "(null)"
    engine.run(
        f"insert into asked_servers select v from (values {names}) as t(v) where v is not null"
    )
    bounds = f"{window.since}, {window.until}, {origin}, {width}"
    engine.run(f"insert into window_recorded by name from recorded({bounds})")
    conditions = [f"middle >= {window.since}", f"middle < {window.until}"]
    conditions += [wanted.sql(identifier(name)) for name, wanted in asked.filters]
    engine.run(
        f"create or replace table counted as select *, {_line(asked.dimension)} as line, "
        f"(middle - {origin}) // {width} as bucket from entries where {' and '.join(conditions)}"
    )


def _buckets(asked: Question) -> tuple[int, int]:
    """Origin and width; the window is one bucket unless others are asked for."""
    window = asked.window
    if asked.bucket is None:
        return window.since, max(window.length, 1)
    count = window.length // asked.bucket
    if count > MAX_ROWS:
        raise FleetError(
            "too many buckets",
            f"The window holds {count} buckets, {MAX_ROWS} are allowed.",
            "Use a wider bucket or a shorter window.",
        )
    return 0, asked.bucket


def _line(dimension: str) -> str:
    """What rows of the table are added up by, a struct."""
    columns = _KEY if dimension == STATEMENT else ()
    key = "query_id" if dimension in (STATEMENT, "query_id") else identifier(dimension)
    number = "query_id::bigint" if dimension in (STATEMENT, "query_id") else "null::bigint"
    told = [f"'key': {key}", f"'number': {number}"]
    told += [f"'{name}': {name if name in columns else 'null::varchar'}" for name in _KEY]
    return f"{{{', '.join(told)}}}"


def _order(order_by: str, shown: list[str]) -> tuple[str, str]:
    """What decides the rank of a line, and what must be joined for it."""
    if order_by in _MEASURED:
        return "strength", f"left join {_MEASURED[order_by]} using (id)"
    if order_by in _ORDERS:
        return _ORDERS[order_by], ""
    if order_by in shown:
        return identifier(f"{order_by}_ms" if order_by.endswith("_time") else order_by), ""
    raise FleetError(
        f'invalid order_by "{order_by}"',
        hint="Available orders are time, mean, p95, p99, cpu, blocks, and every counter, "
        "such as calls, rows, errors.",
    )


def _rows(asked: Question, shown: list[str], n: int) -> str:
    """The answer: each period with each line, and what both have."""
    origin, width = _buckets(asked)
    window = asked.window
    sums = ", ".join(
        f"case when is_known then {_sum(name)} end as {identifier(name)}" for name in shown
    )
    zero = {"pct": "0.0000::decimal(38, 4)", "calls_per_second": "0.0000::decimal(38, 4)"}
    measures = ", ".join(
        f"case when is_known then coalesce({name}, {zero.get(name, 'null')}) end as {name}"
        for name in _MEASURES
    )
    text = "fingerprint" if asked.dimension == "fingerprint" else "query_id"
    view = f"text_by_{text.removesuffix('_id')}"
    key = "l.line.key" if asked.dimension in (STATEMENT, "query_id", "fingerprint") else "null"
    return (
        f"select period_start, period_end, l.line as line, t.query_text, grain_us, coverage_pct, "
        f"{measures}, {sums}, servers, l.place as place, total from "
        f"fleet_recorded({window.since}, {window.until}, {origin}, {width}) as p "
        f"cross join (select * from statement_lines where place <= {n} + 1) as l "
        "left join place_sums as s using (bucket, place) "
        "left join statement_measures() as m using (bucket, place) "
        "left join rates() as r using (bucket, place) "
        f"left join {view} as t on t.{text} = {key} "
        "left join (select bucket, sum(total_exec_time_ms) as total from place_sums "
        "group by bucket) as w using (bucket) order by bucket, place"
    )


def _sum(name: str) -> str:
    if name.endswith("_time"):
        return f"coalesce(s.{identifier(name + '_ms')}, 0)::decimal(38, 4)"
    return f"coalesce(s.{identifier(name)}, 0)::bigint"


def _row(row: Row, n: int) -> Row:
    line = row.pop("line")
    assert isinstance(line, dict)
    told: Row = {name: line[name] for name in _KEY}
    if told["toplevel"] is not None:
        told["toplevel"] = told["toplevel"] == "true"
    told["key"] = EVICTED if line["key"] is None else line["key"]
    if int(str(row["place"])) > n:
        told = dict.fromkeys(_KEY) | {"key": OTHER}
        row["query_text"] = None
    if not row["total"]:
        row["pct"] = None
    grain = row["grain_us"]
    return row | told | {"grain": interval_text(int(str(grain))) if grain else None}
