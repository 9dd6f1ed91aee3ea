"""The load of a fleet: `aas`, `top`, `timeline`. The SQL of `engines/` measures it; this file runs
its steps in order."""

from dataclasses import dataclass, replace

from tacho_fleet.engine import NULL_TEXT, Engine, Row
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import Filter, case, identifier, quoted
from tacho_fleet.labels import Labels, column, is_label
from tacho_fleet.output import interval_text
from tacho_fleet.times import DAY, HOUR, MINUTE, Window

OTHER = "(other)"
SCOPES = ("load", "foreground", "all")
ORDERS = ("avg", "peak", "p99", "sessions")
DIMENSIONS = (
    "server", "wait_event_type", "wait_event", "query_id", "fingerprint", "plan_id", "tags",
    "pid", "backend_type", "category", "database", "username", "application", "client_addr",
    "leader", "state", "cpu", "blocked_by",
)  # fmt: skip
# Dimensions that load_minute has.
OF_MINUTES = ("server", "wait_event_type", "wait_event")
# Dimensions that have a text, with the text for null.
TEXTS = {"query_id": "(no query id)", "fingerprint": "(no fingerprint)"}
# Columns of a line that is not split.
WHOLE = "NULL::VARCHAR AS by_key, 1 AS by_place"
MAX_ROWS, MAX_BUCKETS = 100_000, 3_000_000
_ALL = 1 << 40
# Most lines with a condition of their own; more lines are numbered after adding up.
_MOST_NAMED = 50
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
    """A question about the samples of a window."""

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
    labels: Labels = ()


def aas(engine: Engine, asked: Question) -> list[Row]:
    """The load of the window in one row."""
    load = load_of(engine, asked, asked.bucket or MINUTE, MAX_BUCKETS)
    load.add_up("keys")
    whole = load.whole()
    return [load.told(whole | row) for row in engine.rows("FROM aas_row()")]


def top(engine: Engine, asked: Question) -> tuple[list[Row], Row]:
    """The largest keys, each whole or split by another dimension, and the rest; and the coverage
    of the window."""
    load = load_of(engine, asked, asked.bucket or MINUTE, MAX_BUCKETS)
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
    load = load_of(engine, asked, width, MAX_ROWS)
    if asked.bucket:
        _check_width(engine, width)
    if asked.by:
        load.rank(asked.by, None, "avg")
    else:
        load.add_up("keys")
        load.lines("keys", f"(SELECT NULL::VARCHAR AS key, {WHOLE}, 1 AS place)")
    load.see_buckets()
    rows = engine.rows(f"FROM timeline_rows({load.n}, {width})")
    for row in rows:
        row["key"] = shown_key(asked.by, row["key"]) if asked.by else None
    return [load.told(row) for row in rows]


def load_of(engine: Engine, asked: Question, width: int, most: int) -> "Load":
    """The steps of an answer, with the observed time filled in."""
    return (MinuteLoad if asked.minutes else Load)(engine, asked, width, most)


class Load:
    """The steps of an answer from samples."""

    def __init__(self, engine: Engine, asked: Question, width: int, most: int) -> None:
        """Reads the observed time in the window."""
        self.engine, self.asked, self.width = engine, asked, width
        self.n = _ALL if asked.n is None else asked.n
        window = asked.window
        _check_buckets(window, width, most)
        self.window = {"since": window.since, "until": window.until, "width": width}
        self.observe()
        engine.ask_servers(asked.servers)

    def observe(self) -> None:
        """Fills the observed time of servers, and the number of servers with equal times."""
        self.engine.fill("ticks_alike", "ticks", **self.window)
        self.engine.fill("ticks_before", "ticks_before", since=self.window["since"])
        self.add("window_observed", "observed()")
        self.add("observed_alike", "alike()")

    def add(self, step: str, relation: str) -> None:
        """Adds rows to a step."""
        self.engine.run(f"insert into {step} BY NAME FROM {relation}")

    def add_up(self, of: str, key: str = NULL_TEXT, by_key: str = NULL_TEXT) -> None:
        """Adds up the samples asked for: by server and line, and by line and bucket."""
        names = {self.asked.dimension, self.asked.by, *(name for name, _ in self.asked.filters)}
        source = "dimensions_by_fingerprint" if "fingerprint" in names else "dimensions"
        self.fill(f"cells_of_{of}", "cells", key, by_key, source=source)
        self.add(f"totals_of_{of}", f"totals('cells_of_{of}')")
        self.add(f"loads_of_{of}", f"loads('cells_of_{of}')")

    def column(self, dimension: str) -> str:
        """SQL of a dimension."""
        labels = dict(self.asked.labels).get(dimension)
        if labels is None:
            return identifier(dimension)
        return column(labels, "server", self.engine.reader.constant)

    def fill(self, step: str, name: str, key: str, by_key: str, **parts: object) -> None:
        """Fills a step with lines of two keys, or of their places."""
        names = ("place", "by_place") if step.endswith("_of_lines") else ("key", "by_key")
        line = "* EXCLUDE (key, by_key), {{'{}': key, '{}': by_key}} AS line".format(*names)
        told = {"key": key, "by_key": by_key, "conditions": self.conditions()}
        self.engine.fill(step, name, line, **told, **self.window, **parts)

    def conditions(self) -> str:
        """SQL of the conditions on samples."""
        scopes = SCOPES[: SCOPES.index(self.asked.scope) + 1]
        conditions = [f"scope IN ({', '.join(map(quoted, scopes))})"]
        conditions += ["is_worker = 0"] if self.asked.by_leader else []
        return " AND ".join(conditions + self.filtered("dimensions"))

    def filtered(self, source: str) -> list[str]:
        """SQL of the filters."""
        return [self._condition(source, name, wanted) for name, wanted in self.asked.filters]

    def _condition(self, source: str, name: str, wanted: Filter) -> str:
        if name == "wait_event" and any(value and ":" not in value for value in wanted.values):
            found = self.engine.read(f"SELECT DISTINCT wait_event FROM {source}")
            known = set(map(str, found["wait_event"].to_pylist()))
            values = (value and _qualified(value, known) for value in wanted.values)
            wanted = replace(wanted, values=tuple(values))
        return wanted.sql(identifier(name), self.engine.reader.constant)

    def rank(self, dimension: str, by: str | None, order_by: str) -> None:
        """Numbers keys and parts, and adds up the rest behind them."""
        order = quoted(order_by)
        self.add_up("keys", self.column(dimension))
        self.add("key_ranks", f"ranked_keys({order})")
        if by is None:
            self.lines("keys", f"(SELECT key, {WHOLE}, place FROM key_ranks)")
        else:
            self.add_up("parts", self.column(dimension), self.column(by))
            self.lines("parts", f"ranked_parts({order})")

    def lines(self, of: str, ranks: str) -> None:
        """Adds up by line, once lines are numbered."""
        self.add("line_ranks", ranks)
        self.add("totals_of_lines", f"totals_by_line('totals_of_{of}', {self.n})")
        self.add_loads(of)

    def add_loads(self, of: str) -> None:
        """Adds up loads of buckets by line."""
        self.add("loads_of_lines", f"loads_by_line('loads_of_{of}', {self.n})")

    def see_buckets(self) -> None:
        """Fills the coverage that all rows of a bucket share."""
        self.add("seen_buckets", f"seen_in_buckets({self.bounds()})")

    def whole(self) -> Row:
        """The columns that all rows of the window share."""
        window = self.asked.window
        since, until = window.since, window.until
        self.add("seen_window", f"seen_in_window({since}, {until})")
        found = self.engine.rows("SELECT * EXCLUDE (period) FROM fleet_coverage('seen_window')")
        none: Row = dict.fromkeys(_COVERAGE) | dict.fromkeys(_COVERAGE[1:4], 0) | {"servers": 0}
        row = found[0] if found else none
        grain = interval_text(self.width)
        told: Row = {"period_start": since, "period_end": until, "grain": grain}
        return self.told(row | told)

    def told(self, row: Row) -> Row:
        """A row with its source."""
        return row | {"source": "raw" if row["ticks_observed"] else "none"}

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
        """Arguments of macros that work by bucket."""
        return ", ".join(map(str, self.window.values()))


class MinuteLoad(Load):
    """The same from the small table. Loads of buckets are read once lines are numbered, for a few
    lines, with servers of equal observed time added together: every key, server and bucket would
    be millions of rows in a large fleet."""

    def observe(self) -> None:
        """Reads observed minutes, because the small table has no ticks."""
        _check_minutes(self.asked, self.width)
        self.engine.fill("window_observed", "minutes_by_server", **self.window)
        self.engine.fill("observed_alike", "minutes_alike", **self.window)

    def add_up(self, of: str, key: str = NULL_TEXT, by_key: str = NULL_TEXT) -> None:
        """Adds up by server and line; also by line and bucket if a rank needs it."""
        self.fill(f"totals_of_{of}", "minute_totals", key, by_key)
        if self.by_buckets():
            self.fill_loads(of, key, by_key)

    def by_buckets(self) -> bool:
        """Are loads of all lines needed, or are there too many lines to name?"""
        whole = self.asked.dimension is None and self.asked.by is None
        return whole or self.asked.order_by in ("peak", "p99") or self.n > _MOST_NAMED

    def fill_loads(self, of: str, key: str, by_key: str) -> None:
        """Adds up by line and bucket."""
        since, until, width = self.window.values()
        end = f"least((bucket + 1) * {width}, {until})"
        whole = f"idiv({end} - greatest(bucket * {width}, {since}), 1000)"
        name = "minute_loads"
        if self.engine.count(f"in_part({self.bounds()})"):
            name = "minute_loads_unlike"
        self.fill(f"loads_of_{of}", name, key, by_key, whole_ms=whole)

    def add_loads(self, of: str) -> None:
        """Adds up loads of buckets by line."""
        if self.by_buckets():
            super().add_loads(of)
            return
        lines = f"place <= {self.n} AND by_place <= {self.n}"
        lines = self.engine.rows(f"FROM line_ranks WHERE {lines}")
        self.fill_loads("lines", *self.places(lines))

    def places(self, lines: list[Row]) -> tuple[str, str]:
        """SQL that numbers keys and parts as the lines of the answer."""
        asked = self.asked
        keys = {row["place"]: self._is(asked.dimension or asked.by, row["key"]) for row in lines}
        place = case(keys.items(), self.n + 1)
        if not (asked.dimension and asked.by):
            return place, "1"
        parts = [
            (row["by_place"], f"{keys[row['place']]} AND {self._is(asked.by, row['by_key'])}")
            for row in lines
        ]
        others = [(self.n + 1, " OR ".join(keys.values()))] if keys else []
        return place, case([*parts, *others], 1)

    def _is(self, dimension: str | None, key: object) -> str:
        wanted = Filter((None if key is None else str(key),), negated=False)
        return wanted.sql(self.column(dimension or ""), self.engine.reader.constant)

    def conditions(self) -> str:
        """SQL of the conditions on minutes."""
        return " AND ".join(["true", *self.filtered("minutes")])

    def see_buckets(self) -> None:
        """Fills the coverage that all rows of a bucket share."""
        self.add("seen_buckets", f"seen_alike({self.bounds()})")

    def told(self, row: Row) -> Row:
        """A row with its source; minutes have no ticks."""
        unknown = dict.fromkeys(
            ("peak_sessions", "ticks_expected", "ticks_observed", "ticks_failed")
        )
        return row | unknown | {"source": "minute" if row["servers"] else "none"}


def _qualified(bare: str, known: set[str]) -> str:
    """Completes `ClientRead` to `Client:ClientRead` if only one class has it."""
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
    """The key, or its text for null."""
    return TEXTS.get(dimension or "") if key is None else key


def _auto_bucket(window: Window) -> int:
    if window.length <= 6 * HOUR:
        return MINUTE
    return HOUR if window.length <= 7 * DAY else DAY


def _check_buckets(window: Window, width: int, most: int) -> None:
    count = window.length // width
    if count > most:
        raise FleetError(
            "too many buckets",
            f"The window holds {count} buckets; at most {most} are allowed.",
            "Use a wider bucket or a shorter window.",
        )


def _check_minutes(asked: Question, width: int) -> None:
    """The small table has whole minutes, load, and few dimensions."""
    named = {asked.dimension, asked.by, *(name for name, _ in asked.filters)} - {None}
    window = asked.window
    named = {name for name in named if not is_label(name)}
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
            "bucket is shorter than the sampling interval",
            f"The bucket is {given}; the window has samples every {least}.",
            f"Use a bucket of at least {least}, or a window without these samples.",
        )
