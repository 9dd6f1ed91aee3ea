"""The load of a fleet: `aas`, `top`, `timeline`. The SQL of `engines/` measures; here its
steps are put behind each other."""

from dataclasses import dataclass, replace

from tacho_fleet.engine import NULL_TEXT, Engine, Row
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import Filter, identifier, quoted
from tacho_fleet.output import interval_text
from tacho_fleet.times import DAY, HOUR, MINUTE, Window

OTHER = "(other)"
SCOPES = ("load", "foreground", "all")
ORDERS = ("avg", "peak", "p99", "sessions")
DIMENSIONS = (
    "server", "wait_event_type", "wait_event", "query_id", "fingerprint", "plan_id", "pid",
    "backend_type", "category", "database", "username", "application", "client_addr",
    "leader", "state", "cpu", "blocked_by",
)  # fmt: skip
# Those that load_minute has.
OF_MINUTES = ("server", "wait_event_type", "wait_event")
# Dimensions that have a text: view of the texts, what stands for null.
TEXTS = {"query_id": "(no query id)", "fingerprint": "(no fingerprint)"}
# What a line has that is not split.
WHOLE = "NULL::VARCHAR AS by_key, 1 AS by_place"
MAX_ROWS, MAX_BUCKETS = 100_000, 3_000_000
_ALL = 1 << 40
_PERIOD = ("period_start", "period_end", "source", "grain")
_MEASURES = ("avg_aas", "peak_aas", "p99_aas", "peak_sessions", "backend_seconds")
_COVERAGE = (
    "vcpus", "ticks_expected", "ticks_observed", "ticks_failed", "coverage_pct", "servers",
)  # fmt: skip
AAS = (*_PERIOD, *_MEASURES, *_COVERAGE)
TOP = ("key", "by_key", "query_text", "source", "period_start", "period_end", "grain",
       *_MEASURES, "pct", *_COVERAGE)  # fmt: skip
TIMELINE = ("bucket_start", "key", "source", "avg_aas", "peak_sessions", "backend_seconds",
            *_COVERAGE)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is asked about the samples of a window."""

    window: Window
    servers: tuple[str, ...]
    bucket: int | None = None
    scope: str = "load"
    by_leader: bool = False
    filters: tuple[tuple[str, Filter], ...] = ()
    dimension: str | None = None
    by: str | None = None
    n: int | None = 10
    order_by: str = "avg"
    minutes: bool = False


def aas(engine: Engine, asked: Question) -> list[Row]:
    """The load of the window in one row."""
    load = Load(engine, asked, asked.bucket or MINUTE, MAX_BUCKETS)
    load.cells("cells_of_keys")
    whole = load.whole()
    return [load.told(whole | row) for row in engine.rows("FROM aas_row()")]


def top(engine: Engine, asked: Question) -> tuple[list[Row], Row]:
    """The largest keys, each whole or split by another dimension, and what is left; and
    what was observed."""
    load = Load(engine, asked, asked.bucket or MINUTE, MAX_BUCKETS)
    dimension = asked.dimension or "wait_event"
    load.rank(dimension, asked.by, asked.order_by)
    whole = load.whole()
    texts = load.texts()
    rows = engine.rows(f"FROM top_rows({load.n})")
    for row in rows:
        row["key"] = shown_key(dimension, row["key"])
        row["by_key"] = shown_key(asked.by, row["by_key"]) if asked.by else None
        names = {dimension: row["key"], asked.by: row["by_key"]}
        named = next((names[kind] for kind in TEXTS if kind in names), None)
        row["query_text"] = texts.get(str(named))
    return [load.told(whole | row) for row in rows], whole


def timeline(engine: Engine, asked: Question) -> list[Row]:
    """The load bucket by bucket, whole or split by a dimension."""
    width = asked.bucket or _auto_bucket(asked.window)
    load = Load(engine, asked, width, MAX_ROWS)
    if asked.bucket:
        _check_width(engine, width)
    if asked.by:
        load.rank(asked.by, None, "avg")
    else:
        load.cells("cells_of_keys")
        load.lines("cells_of_keys", f"SELECT NULL::VARCHAR AS key, {WHOLE}, 1 AS place")
    engine.run(f"insert into seen_buckets BY NAME FROM seen_in_buckets({load.bounds()})")
    rows = engine.rows(f"FROM timeline_rows({load.n}, {width})")
    for row in rows:
        row["key"] = shown_key(asked.by, row["key"]) if asked.by else None
    return [load.told(row) for row in rows]


class Load:
    """The steps of an answer."""

    def __init__(self, engine: Engine, asked: Question, width: int, most: int) -> None:
        """Finds out what was observed in the window."""
        self.engine, self.asked, self.width = engine, asked, width
        self.n = _ALL if asked.n is None else asked.n
        window = asked.window
        _check_buckets(window, width, most)
        self.window = {"since": window.since, "until": window.until, "width": width}
        if asked.minutes:
            _check_minutes(asked, width)
            engine.fill("ticks_alike", "minutes_observed", **self.window)
        else:
            engine.fill("ticks_alike", "ticks", **self.window)
            engine.fill("ticks_before", "ticks_before", since=window.since)
        engine.run("insert into window_observed BY NAME FROM observed()")
        engine.ask_servers(asked.servers)

    def cells(self, table: str, key: str = NULL_TEXT, by_key: str = NULL_TEXT) -> None:
        """Adds up the samples that are asked for by server, line and bucket."""
        asked = self.asked
        known = {asked.dimension, asked.by, *(name for name, _ in asked.filters)}
        scopes = SCOPES[: SCOPES.index(asked.scope) + 1]
        conditions = ["true"] if asked.minutes else [f"scope IN ({', '.join(map(quoted, scopes))})"]
        conditions += ["is_worker = 0"] if asked.by_leader else []
        conditions += [self._condition(name, wanted) for name, wanted in asked.filters]
        self.engine.fill(
            table,
            "minute_cells" if asked.minutes else "cells",
            "* EXCLUDE (key, by_key), {'key': key, 'by_key': by_key} AS line",
            key=key,
            by_key=by_key,
            source="dimensions_by_fingerprint" if "fingerprint" in known else "dimensions",
            conditions=" AND ".join(conditions),
            **self.window,
        )

    def _condition(self, name: str, wanted: Filter) -> str:
        if name == "wait_event" and any(value and ":" not in value for value in wanted.values):
            source = "minutes" if self.asked.minutes else "dimensions"
            found = self.engine.read(f"SELECT DISTINCT wait_event FROM {source}")
            known = set(map(str, found["wait_event"].to_pylist()))
            values = (value and _qualified(value, known) for value in wanted.values)
            wanted = replace(wanted, values=tuple(values))
        return wanted.sql(identifier(name), self.engine.reader.constant)

    def rank(self, dimension: str, by: str | None, order_by: str) -> None:
        """Numbers keys and parts, and adds up what is left behind them."""
        order = quoted(order_by)
        self.cells("cells_of_keys", identifier(dimension))
        self.engine.run(f"insert into key_ranks BY NAME FROM ranked_keys({order})")
        if by is None:
            self.lines("cells_of_keys", f"SELECT key, {WHOLE}, place FROM key_ranks")
        else:
            self.cells("cells_of_parts", identifier(dimension), identifier(by))
            self.lines("cells_of_parts", f"FROM ranked_parts({order})")

    def lines(self, cells: str, ranks: str) -> None:
        """Adds up cells by line, once lines are numbered."""
        self.engine.run(f"insert into line_ranks BY NAME {ranks}")
        lines = f"cells_by_line({quoted(cells)}, {self.n})"
        self.engine.run(f"insert into cells_of_lines BY NAME FROM {lines}")

    def whole(self) -> Row:
        """What every row of the window says."""
        window = self.asked.window
        since, until = window.since, window.until
        self.engine.run(f"insert into seen_window BY NAME FROM seen_in_window({since}, {until})")
        found = self.engine.rows("SELECT * EXCLUDE (period) FROM fleet_coverage('seen_window')")
        none: Row = dict.fromkeys(_COVERAGE) | dict.fromkeys(_COVERAGE[1:4], 0) | {"servers": 0}
        row = found[0] if found else none
        grain = interval_text(self.width)
        told: Row = {"period_start": since, "period_end": until, "grain": grain}
        return self.told(row | told)

    def told(self, row: Row) -> Row:
        """A row with what it is from; minutes know no ticks."""
        if not self.asked.minutes:
            return row | {"source": "raw" if row["ticks_observed"] else "none"}
        unknown = dict.fromkeys(
            ("peak_sessions", "ticks_expected", "ticks_observed", "ticks_failed")
        )
        return row | unknown | {"source": "minute" if row["servers"] else "none"}

    def texts(self) -> dict[str, str]:
        """Texts by the keys of the lines."""
        names = {self.asked.dimension, self.asked.by}
        for name in (name for name in TEXTS if name in names):
            column = "key" if name == self.asked.dimension else "by_key"
            rows = self.engine.rows(
                f"SELECT DISTINCT {column} AS key FROM line_ranks "
                f"WHERE place <= {self.n} AND {column} IS NOT NULL"
            )
            return self.engine.texts(name, [str(row["key"]) for row in rows])
        return {}

    def bounds(self) -> str:
        """Arguments of what is by bucket."""
        return ", ".join(map(str, self.window.values()))


def _qualified(bare: str, known: set[str]) -> str:
    """`ClientRead` is `Client:ClientRead` when only one class has it."""
    found = sorted(key for key in known if key.partition(":")[2] == bare)
    if bare in known or not found:
        return bare
    if len(found) > 1:
        raise FleetError(
            f'wait event "{bare}" is ambiguous',
            f"Candidates are {', '.join(found)}.",
            "Write class and name as Type:Event.",
        )
    return found[0]


def shown_key(dimension: str | None, key: object) -> object:
    """What stands for null."""
    return TEXTS.get(dimension or "") if key is None else key


def _auto_bucket(window: Window) -> int:
    if window.length <= 6 * HOUR:
        return MINUTE
    return HOUR if window.length <= 7 * DAY else DAY


def _check_buckets(window: Window, width: int, most: int) -> None:
    if width <= 0:
        raise FleetError(
            "bucket must be greater than zero", hint="Use a positive interval such as 1m."
        )
    count = window.length // width
    if count > most:
        raise FleetError(
            "too many buckets",
            f"The window holds {count} buckets, {most} are allowed.",
            "Use a wider bucket or a shorter window.",
        )


def _check_minutes(asked: Question, width: int) -> None:
    """The small table has whole minutes, load, and few dimensions."""
    named = {asked.dimension, asked.by, *(name for name, _ in asked.filters)} - {None}
    window = asked.window
    if named - set(OF_MINUTES) or asked.scope != "load" or asked.by_leader:
        raise FleetError(
            "minutes have no answer to this question",
            f"They have dimensions {', '.join(OF_MINUTES)}, and scope load.",
            "Leave out --minutes.",
        )
    if any(us % MINUTE for us in (window.since, window.until, width)):
        raise FleetError(
            "the window or a bucket does not consist of whole minutes",
            hint="Use whole minutes, or leave out --minutes.",
        )


def _check_width(engine: Engine, width: int) -> None:
    found = engine.rows("SELECT max(interval_ms) * 1000 AS longest FROM window_observed")
    longest = int(str(found[0]["longest"] or 0))
    if width < longest:
        given, least = interval_text(width), interval_text(longest)
        raise FleetError(
            "bucket is shorter than the interval of samples",
            f"The bucket given is {given}, the window has samples taken every {least}.",
            f"Use a bucket of at least {least}, or a window without these samples.",
        )
