"""A question with all arguments checked: lake, servers, window, filters."""

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tacho_fleet import statements
from tacho_fleet.engine import ALL_TABLES, TABLES, Lake, Part, Row, Stream
from tacho_fleet.engines import MINUTES, open_engine
from tacho_fleet.errors import FleetError
from tacho_fleet.filters import Filter, parse
from tacho_fleet.labels import LABEL, Labels, is_label
from tacho_fleet.landing import Hour, Landing
from tacho_fleet.load import DIMENSIONS, Question
from tacho_fleet.storage import is_remote
from tacho_fleet.times import DAY, Window, interval, moment, window


class Session:
    """The hours of a lake that a question is about."""

    def __init__(self, options: Namespace) -> None:
        """Opens the lake; reads only names of objects."""
        self.options = options
        self.root = _root(options)
        self.lake = open_lake(self.root)
        known = self.lake.hours()
        # a catalog counts as a history even before the first commit
        self.is_empty = not known and isinstance(self.lake, Landing)
        self.hours = _asked(self.lake, known, options)
        self.window = _window(options, self.hours or known)
        read = self.hours if self._is_of_all() else self.near()
        asks_all = len(self.hours) == len(known) and self.lake.is_whole(MINUTES)
        tables = ALL_TABLES if hasattr(options, "query") else TABLES
        part = Part(read, tables, (MINUTES,) if asks_all else ())
        self.engine = open_engine(self.lake, part, options.memory_limit_mb, options.engine)

    @staticmethod
    def window_of(options: Namespace) -> Window:
        """The window of a question."""
        lake = open_lake(_root(options))
        known = lake.hours()
        return _window(options, _asked(lake, known, options) or known)

    def _is_of_all(self) -> bool:
        """A query of the user covers the whole lake, unless it has a window."""
        options = self.options
        return hasattr(options, "query") and options.since is None and options.until is None

    def near(self) -> list[Hour]:
        """The hours of the window, and for each server the last hour before it."""
        since, until = self.window.since, self.window.until
        if hasattr(self.options, "order_by") and not hasattr(self.options, "scope"):
            # an interval of statistics may reach into neighbouring hours
            since, until = since - DAY, until + DAY
        near = [hour for hour in self.hours if hour.end > since and hour.begin < until]
        before = [hour for hour in self.hours if hour.end <= since]
        last = {hour.server: hour for hour in sorted(before, key=lambda hour: hour.begin)}
        return near + list(last.values())

    def servers(self) -> tuple[str, ...]:
        """The servers with an hour in the window, else all."""
        since, until = self.window.since, self.window.until
        within = {hour.server for hour in self.hours if hour.end > since and hour.begin < until}
        return tuple(sorted(within or {hour.server for hour in self.hours}))

    def expect_history(self) -> None:
        """An error for a lake without history: "no load" and "no history" are different
        answers."""
        if self.is_empty:
            hint = "Give --lake the destination of tacho ship. An hour is there once it is over."
            raise FleetError(f'there is no history in "{self.root}"', hint=hint)

    def filters(self, names: Sequence[str]) -> tuple[tuple[str, Filter], ...]:
        """The filters that are given."""
        given = {name: getattr(self.options, name, None) for name in names}
        return tuple(
            (name, _checked(name, parse(name, text)))
            for name, text in given.items()
            if text is not None
        )

    def about_statements(self) -> statements.Question:
        """The question about statistics of statements."""
        self.expect_history()
        options = self.options
        return statements.Question(
            window=self.window,
            servers=self.servers(),
            dimension=_dimension(options.dimension, statements.DIMENSIONS) or "",
            filters=self.filters(statements.FILTERS),
            bucket=_bucket(options.bucket),
            n=_limit(options.n),
            order_by=options.order_by,
            labels=self._asked_labels(options.dimension),
        )

    def question(self) -> Question:
        """The question about samples."""
        self.expect_history()
        options = vars(self.options)
        return Question(
            window=self.window,
            servers=self.servers(),
            bucket=_bucket(options.get("bucket")),
            scope=options.get("scope", "load"),
            by_leader=options.get("by_leader", False),
            filters=self.filters(DIMENSIONS[1:]),
            dimension=_dimension(options.get("dimension")),
            by=_dimension(options.get("by")),
            labels=self._asked_labels(options.get("dimension"), options.get("by")),
            n=_limit(options.get("n")),
            order_by=options.get("order_by", "avg"),
            minutes=options.get("minutes", False),
        )

    def _asked_labels(self, *names: str | None) -> Labels:
        """The servers' values of the labels that are dimensions."""
        asked = [name for name in names if name and is_label(name)]
        if not asked:
            return ()
        labels = _labels(self.lake, self.hours, self.options.memory_limit_mb)
        keys = ((name, name.removeprefix(LABEL)) for name in asked)
        return tuple(
            (name, {server: own[key] for server, own in labels.items() if key in own})
            for name, key in keys
        )

    def heading(self, rows: list[Row]) -> str:
        """The columns that all rows of a window share."""
        since, until = moment(self.window.since), moment(self.window.until)
        end = f"{until:%H:%M:%S}" if since.date() == until.date() else f"{until:%F %T}"
        told = "".join(
            f", {name} {rows[0][column]}{unit}"
            for name, column, unit in (
                ("servers", "servers", ""),
                ("coverage", "coverage_pct", " %"),
            )
            if rows and rows[0][column] is not None
        )
        return f"{since:%F %T} to {end} UTC{told}\n\n"

    def sql(self, query: str) -> tuple[list[str], Iterator[list[Row]]]:
        """The columns of a user's query, and its rows block by block."""
        with _answering():
            stream = self.engine.reader.stream(query)
        return stream.columns, _blocks(stream)


def _blocks(stream: Stream) -> Iterator[list[Row]]:
    with _answering():
        for block in stream.blocks:
            yield block.to_pylist()


@contextmanager
def _answering() -> Iterator[None]:
    """Reports why a query has no answer."""
    try:
        yield
    except FleetError:
        raise
    except Exception as error:  # each engine has its own errors
        detail = str(error).splitlines()[0].rstrip(".")
        hint = f"Tables are {', '.join(ALL_TABLES)}."
        raise FleetError("could not answer the query", f"{detail}.", hint) from error


def open_lake(root: str) -> Lake:
    """Opens a directory, or a catalog by its address."""
    if "://" in root and not root.startswith("file://") and not is_remote(root):
        # not needed for a directory
        from tacho_fleet.tables import Tables  # noqa: PLC0415

        return Tables(root)
    return Landing.open(root)


def _root(options: Namespace) -> str:
    root = options.lake or os.environ.get("TACHO_LAKE")
    if not root:
        raise FleetError(
            "no lake given", hint="Name it with --lake, or in the environment: TACHO_LAKE."
        )
    return str(root)


def _asked(lake: Lake, hours: list[Hour], options: Namespace) -> list[Hour]:
    """The hours of the servers asked for."""
    if options.server:
        wanted = parse("server", options.server)
        hours = [hour for hour in hours if wanted.accepts(hour.server)]
    return _labelled(lake, hours, options) if options.label else hours


def _window(options: Namespace, hours: Sequence[Hour]) -> Window:
    end = max((hour.end for hour in hours), default=0)
    return window(options.since, options.until, end)


def _labels(lake: Lake, hours: list[Hour], memory_limit_mb: int) -> dict[str, dict[str, str]]:
    """The labels of each server, from its newest hour."""
    newest = list({hour.server: hour for hour in hours}.values())
    engine = open_engine(lake, Part(newest), memory_limit_mb)
    query = "SELECT server, any_value(labels) AS labels FROM servers GROUP BY server"
    rows = engine.read(query).to_pylist()
    return {row["server"]: json.loads(str(row["labels"] or "{}")) for row in rows}


def _labelled(lake: Lake, hours: list[Hour], options: Namespace) -> list[Hour]:
    """Keeps servers whose newest hour has the wanted labels."""
    labels = _labels(lake, hours, options.memory_limit_mb)
    for text in options.label:
        key, separator, value = text.partition("=")
        if not separator:
            raise FleetError(f'invalid label "{text}"', hint="Write it as KEY=VALUE.")
        wanted = parse("label", value)
        hours = [h for h in hours if wanted.accepts(labels.get(h.server, {}).get(key))]
    return hours


def _dimension(name: str | None, known: Sequence[str] = DIMENSIONS) -> str | None:
    if name is not None and name not in known and not is_label(name):
        hint = f"Available are {', '.join(known)}, and {LABEL}KEY."
        raise FleetError(f'dimension "{name}" does not exist', hint=hint)
    return name


def _checked(name: str, wanted: Filter) -> Filter:
    """Turns the displayed forms of a null key into null."""
    shown = {"query_id": ("(no query id)", "(evicted)", "0"), "fingerprint": ("(no fingerprint)",)}
    values = (None if value in shown.get(name, ()) else value for value in wanted.values)
    return replace(wanted, values=tuple(values))


def _bucket(text: str | None) -> int | None:
    width = None if text is None else interval(text)
    if width == 0:
        raise FleetError(
            "bucket must be greater than zero", hint="Use a positive interval such as 1m."
        )
    return width


def _limit(text: str | None) -> int | None:
    if text in (None, "all"):
        return None
    try:
        n = int(str(text))
    except ValueError:
        raise FleetError(f'invalid n "{text}"', hint="Give a whole number, or all.") from None
    if n < 1:
        raise FleetError("n must be at least 1", f"The value is {n}.")
    return n
