"""Two windows side by side: `compare`. The first window is the earlier one, so a positive change
means more load than before."""

from argparse import Namespace
from decimal import Decimal

from tacho_fleet.engine import Engine, Row
from tacho_fleet.load import (
    MAX_BUCKETS,
    NULL_TEXT,
    OTHER,
    TEXTS,
    WHOLE,
    load_of,
    shown_key,
)
from tacho_fleet.output import interval_text
from tacho_fleet.session import Session
from tacho_fleet.times import DAY, MINUTE, Window, moment, time

_MEASURES = ("avg_aas", "peak_aas", "p99_aas", "peak_sessions", "backend_seconds")
_SIDES = ("pct", "vcpus", "source")
_PERIODS = tuple(f"{name}_{side}" for side in (1, 2) for name in ("period_start", "period_end"))
COLUMNS = ("key", "query_text", "change", "avg_delta",
           *(f"{name}_{side}" for name in (*_MEASURES, *_SIDES) for side in (1, 2)), "grain",
           *_PERIODS, "coverage_pct_1", "coverage_pct_2", "servers_1", "servers_2",
           "note")  # fmt: skip
SHOWN = (("key", "key"), ("change", "change"), ("avg_delta", "delta"), ("avg_aas_1", "avg_1"),
         ("avg_aas_2", "avg_2"), ("pct_1", "pct_1"), ("pct_2", "pct_2"),
         ("query_text", "query"))  # fmt: skip
# Least difference of coverage, in percentage points, that gets a note.
_NOTED = 1


class _Side:
    """One of the windows, with its cells."""

    def __init__(self, session: Session) -> None:
        """Adds up the samples; the lake is not read afterwards."""
        self.engine, asked = session.engine, session.question()
        self.dimension = asked.dimension
        self.load = load_of(self.engine, asked, asked.bucket or MINUTE, MAX_BUCKETS)
        key = self.load.column(asked.dimension) if asked.dimension else NULL_TEXT
        self.load.add_up("keys", key)
        self.whole = self.load.whole()
        self.engine.load("compare")
        self.engine.run("insert into measured by name from key_measures()")
        self.texts: dict[str, str] = {}
        if asked.dimension in TEXTS:
            keys = self.engine.rows("select key from measured where key is not null")
            self.texts = self.engine.texts(asked.dimension, [str(row["key"]) for row in keys])

    def measures(self) -> dict[object, Row]:
        """Measures by place, once lines are numbered."""
        rows = self.engine.rows("from measured_lines()")
        return {row.pop("place"): row for row in rows}

    def measure(self, row: Row | None, place: int, n: int) -> Row:
        """The measures of a line; zero if it has no rows in an observed window."""
        if not self.whole["servers"]:
            return dict.fromkeys((*_MEASURES, "pct"))
        if row is None:
            zero = Decimal("0.0000")
            row = dict.fromkeys((*_MEASURES, "pct"), zero)
            row |= {"peak_sessions": None if place > n else 0, "pct": zero if self.any() else None}
        return row

    def any(self) -> bool:
        """Was any session active?"""
        return self.engine.count("measured") > 0


def rows(options: Namespace) -> list[Row]:
    """The keys whose load changed most, and the rest."""
    windows = _windows(options)
    sides = [_Side(Session(Namespace(**vars(options) | _bounds(window)))) for window in windows]
    n = sides[1].load.n
    lines = _lines(sides, n)
    measured = [side.measures() for side in sides]
    note = _note([side.whole for side in sides])
    told = []
    for line in lines:
        place = int(str(line["place"]))
        row = _named(line, sides, place > n)
        for number, (side, rows) in enumerate(zip(sides, measured, strict=True), 1):
            values = side.whole | side.measure(rows.get(place), place, n)
            row |= {f"{name}_{number}": value for name, value in values.items()}
        told.append(row | {"grain": interval_text(sides[1].load.width), "note": note})
    return told


def _lines(sides: list[_Side], n: int) -> list[Row]:
    """Ranks lines by the size of their change, for both sides."""
    first, second = (side.engine for side in sides)
    _copy(first, "from measured", second, "measured_before")
    second.run("insert into changes by name from changed_keys()")
    if sides[1].dimension is None:
        second.run("insert into changes select null, 0, 0, 0, 1, 1 where not exists (from changes)")
    _copy(second, "from changes", first, "changes")
    for side in sides:
        side.load.lines("keys", f"(SELECT key, {WHOLE}, place FROM changes)")
    seen = all(side.whole["servers"] for side in sides)
    return second.rows(f"from changed_lines({n}, {str(seen).lower()})")


def _copy(source: Engine, query: str, target: Engine, step: str) -> None:
    target.connection.register("copied", source.connection.execute(query).to_arrow_table())
    target.run(f"insert into {step} by name from copied")


def _named(line: Row, sides: list[_Side], is_other: bool) -> Row:
    dimension = sides[1].dimension
    key = OTHER if is_other else shown_key(dimension, line["key"]) if dimension else None
    text = sides[1].texts.get(str(key)) or sides[0].texts.get(str(key))
    return {"key": key, "query_text": text} | {n: line[n] for n in ("change", "avg_delta")}


def _windows(options: Namespace) -> list[Window]:
    """The two windows. The second has the bounds of other questions. The first is as long, a
    day earlier, unless its own bounds are given."""
    given = {"since": options.since_2 or options.since, "until": options.until_2 or options.until}
    second = Session.window_of(Namespace(**vars(options) | given))
    since, until = (
        text and time(text, second.until) for text in (options.since_1, options.until_1)
    )
    if since is None:
        since = second.since - DAY if until is None else until - second.length
    return [Window(since, since + second.length if until is None else until), second]


def _bounds(window: Window) -> dict[str, str]:
    return {
        "since": moment(window.since).isoformat(),
        "until": moment(window.until).isoformat(),
    }


def _note(wholes: list[Row]) -> str | None:
    """Why the two windows are hard to compare."""
    seen = [bool(whole["servers"]) for whole in wholes]
    if not any(seen):
        return "neither window was observed"
    for number, one in enumerate(seen, 1):
        if not one:
            return f"window {number} was not observed"
    first, second = (Decimal(str(whole["coverage_pct"])) for whole in wholes)
    if abs(first - second) < _NOTED:
        return None
    return f"unequal coverage: window 1 was observed for {first} %, window 2 for {second} %"
