"""Cost of statements on all servers: `statements-history`."""

from dataclasses import dataclass

from tacho_fleet.engine import NULL_TEXT, Engine, Row
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import Filter, identifier
from tacho_fleet.labels import Labels, column, is_label
from tacho_fleet.load import MAX_ROWS, OTHER
from tacho_fleet.output import interval_text
from tacho_fleet.times import Window

FILTERS = ("query_id", "fingerprint", "database", "username", "toplevel")
# Line of the answer: the reader's key, or one column.
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
_LINE = ("key", "number", *_KEY)
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
    """A question about the statistics of a window."""

    window: Window
    servers: tuple[str, ...]
    dimension: str
    filters: tuple[tuple[str, Filter], ...]
    bucket: int | None
    n: int | None
    order_by: str
    labels: Labels


def counters(engine: Engine) -> list[str]:
    """The columns with sums, in the order of the table."""
    names = [name for name, _ in engine.columns["statements"]]
    others = ("fingerprint", "since_call_ms")
    return [name for name in names[names.index("toplevel") + 1 :] if name not in others]


def shown_counters(engine: Engine) -> list[str]:
    """The counters of an answer, with the readers' names."""
    hidden = ("square_", "histogram_")
    return [name.removesuffix("_ms") for name in counters(engine) if not name.startswith(hidden)]


def history(engine: Engine, asked: Question) -> tuple[list[str], list[Row]]:
    """Columns and rows: for each period the lines with the highest cost in the window."""
    shown = shown_counters(engine)
    strength, ranked = _order(asked.order_by, shown)
    engine.load("statements")
    _prepare(engine, asked)
    engine.run("insert into line_sums by name from sums_by_line()")
    engine.run(
        "insert into statement_lines by name select line, row_number() over ("
        f"order by coalesce({strength}, 0) desc, line.number nulls first, line.key, "
        "line.database nulls first, line.username nulls first, line.toplevel) as place "
        f"from line_sums {ranked}"
    )
    n = asked.n or engine.count("statement_lines")
    engine.run(f"insert into place_sums by name from sums_by_place({n})")
    missing = None if is_label(asked.dimension) else EVICTED
    rows = [_row(row, n, missing) for row in engine.rows(_rows(asked, shown, n))]
    _add_texts(engine, asked, rows)
    return [*COLUMNS, *shown, "servers"], rows


def recorded_text(engine: Engine, asked: Question) -> str:
    """The recorded part of a window, for an answer without rows."""
    window = asked.window
    told = f"{window.since}, {window.until}, {window.since}, {max(window.length, 1)}"
    engine.run("delete from window_recorded")
    engine.run(f"insert into window_recorded by name from recorded({told})")
    [row] = engine.rows(f"select is_known, coverage_pct from fleet_recorded({told})")
    return f"{row['coverage_pct']} %" if row["is_known"] else "nothing"


def _prepare(engine: Engine, asked: Question) -> None:
    """Fills the steps up to the counters and the recorded time."""
    origin, width = _buckets(asked)
    window = asked.window
    bounds = {"since": window.since, "until": window.until}
    engine.ask_servers(asked.servers)
    engine.fill("intervals", "intervals", **bounds)
    told = f"{window.since}, {window.until}, {origin}, {width}"
    engine.run(f"insert into window_recorded by name from recorded({told})")
    names = counters(engine)
    engine.view("entries", counters=", ".join(f"s.{identifier(name)}" for name in names))
    conditions = [wanted.sql(f"e.{name}", engine.reader.constant) for name, wanted in asked.filters]
    parts = bounds | {
        "line": _line(engine, asked),
        "origin": origin,
        "width": width,
        "conditions": " and ".join(conditions) or "true",
    }
    line = "{" + ", ".join(f"'{name}': {name}" for name in _LINE) + "} as line"
    columns = f"* exclude ({', '.join(_LINE)}), {line}"
    sums = ", ".join(f"coalesce(sum(e.{identifier(n)}), 0) as {identifier(n)}" for n in names)
    engine.fill("counted", "sums", columns, sums=sums, **parts)
    engine.fill("called", "calls", columns, **parts)


def _buckets(asked: Question) -> tuple[int, int]:
    """Origin and width; the window is one bucket unless a width is given."""
    window = asked.window
    if asked.bucket is None:
        return window.since, max(window.length, 1)
    count = window.length // asked.bucket
    if count > MAX_ROWS:
        raise FleetError(
            "too many buckets",
            f"The window holds {count} buckets; at most {MAX_ROWS} are allowed.",
            "Use a wider bucket or a shorter window.",
        )
    return 0, asked.bucket


def _line(engine: Engine, asked: Question) -> str:
    """SQL of the columns _LINE, by which rows of the table are added up."""
    by_query = asked.dimension in (STATEMENT, "query_id")
    key = "e.query_id" if by_query else f"e.{asked.dimension}"
    if is_label(asked.dimension):
        key = column(dict(asked.labels)[asked.dimension], "e.server", engine.reader.constant)
    told = [f"{key} as key"]
    told += ["e.number as number" if by_query else "cast(null as bigint) as number"]
    kept = _KEY if asked.dimension == STATEMENT else ()
    told += [f"{f'e.{name}' if name in kept else NULL_TEXT} as {name}" for name in _KEY]
    return ", ".join(told)


def _order(order_by: str, shown: list[str]) -> tuple[str, str]:
    """SQL that decides the rank of a line, and the join it needs."""
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
    """The answer: each period with each line, and the columns that both have."""
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
    return (
        f"select period_start, period_end, l.line as line, grain_us, coverage_pct, "
        f"{measures}, {sums}, servers, l.place as place, total from "
        f"fleet_recorded({window.since}, {window.until}, {origin}, {width}) as p "
        f"cross join (select * from statement_lines where place <= {n} + 1) as l "
        "left join place_sums as s using (bucket, place) "
        "left join statement_measures() as m using (bucket, place) "
        f"left join rates({n}) as r using (bucket, place) "
        "left join (select bucket, sum(total_exec_time_ms) as total from place_sums "
        "group by bucket) as w using (bucket) order by bucket, place"
    )


def _add_texts(engine: Engine, asked: Question, rows: list[Row]) -> None:
    """Adds the texts of lines that are queries."""
    texts: dict[str, str] = {}
    if asked.dimension in (STATEMENT, "query_id", "fingerprint"):
        column = "fingerprint" if asked.dimension == "fingerprint" else "query_id"
        known = {str(row["key"]) for row in rows} - {EVICTED, OTHER}
        texts = engine.texts(column, sorted(known))
    for row in rows:
        row["query_text"] = texts.get(str(row["key"]))


def _sum(name: str) -> str:
    if name.endswith("_time"):
        return f"coalesce(s.{identifier(name + '_ms')}, 0)::decimal(38, 4)"
    return f"coalesce(s.{identifier(name)}, 0)::bigint"


def _row(row: Row, n: int, missing: str | None) -> Row:
    """A row as it is shown, with the text for a null key."""
    line = row.pop("line")
    assert isinstance(line, dict)
    told: Row = {name: line[name] for name in _KEY}
    if told["toplevel"] is not None:
        told["toplevel"] = told["toplevel"] == "true"
    told["key"] = missing if line["key"] is None else line["key"]
    if int(str(row["place"])) > n:
        told = dict.fromkeys(_KEY) | {"key": OTHER}
    if not row["total"]:
        row["pct"] = None
    grain = row["grain_us"]
    return row | told | {"grain": interval_text(int(str(grain))) if grain else None}
