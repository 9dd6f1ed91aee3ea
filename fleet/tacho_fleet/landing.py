"""Objects that `tacho ship` has written: `TABLE/server=NAME/day=DAY/HOUR-NODE-GENERATION.parquet`.
An hour counts if its object of table `servers` exists; of several generations only the greatest
counts. An hour that was taken is in tables of Iceberg, and no longer counts. It has a marker
`taken/…`. Only its object of `servers` is left, so that `tacho ship` knows that it was shipped."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa

from tacho_fleet import fault
from tacho_fleet.errors import FleetError
from tacho_fleet.storage import Directory, Storage
from tacho_fleet.times import HOUR, micros

SERVERS = "servers"
TAKEN = "taken"
REDACTION = "redaction"
# Hive's name of a partition without a value. tacho ship refuses it as the name of a
# server.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NAME = re.compile(
    rf"{SERVERS}/server=([^/]+)/day=(\d{{4}}-\d\d-\d\d)/(\d\d)-([0-9a-f]{{16}})-(\d{{8,}})\.parquet"
)


def _escaped(server: str) -> str:
    return quote(server, safe="").replace("~", "%7E")


@dataclass(frozen=True, order=True)
class Hour:
    """An hour of a node in a generation; `begin` is µs since 1970 UTC."""

    server: str
    node: str
    begin: int
    generation: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The part that all its generations share."""
        return self.server, self.node, self.begin

    @property
    def end(self) -> int:
        """The end, in µs."""
        return self.begin + HOUR

    def path(self, table: str) -> str:
        """The name of its object for a table."""
        time = datetime.fromtimestamp(self.begin // 1_000_000, UTC)
        file = f"{time:%H}-{self.node}-{self.generation:08}.parquet"
        return f"{table}/server={_escaped(self.server)}/day={time:%Y-%m-%d}/{file}"


@dataclass(frozen=True)
class Landing:
    """A directory or bucket that `tacho ship` writes to."""

    storage: Storage

    @staticmethod
    def open(root: str) -> "Landing":
        """The lake in a directory, also as a file:// URL, or below a prefix of a bucket."""
        storage = Storage.open(root)
        if isinstance(storage, Directory) and not Path(storage.address).is_dir():
            raise FleetError(
                f'could not read directory "{storage.address}"',
                hint="Name the directory that tacho ship writes to with --lake.",
            )
        return Landing(storage)

    def hours(self) -> list[Hour]:
        """Every complete hour, in its greatest generation."""
        newest: dict[tuple[str, str, int], Hour] = {}
        for hour in self.all_hours():
            known = newest.get(hour.key)
            if known is None or known.generation < hour.generation:
                newest[hour.key] = hour
        taken = {found.name for found in self.storage.objects(TAKEN)}
        return sorted(hour for hour in newest.values() if hour.path(TAKEN) not in taken)

    def expect_shipped(self) -> None:
        """A place without shipped objects is the wrong place."""
        if not any(self.storage.objects(table) for table in (SERVERS, REDACTION, TAKEN)):
            raise FleetError(
                f'tacho ship has put nothing into "{self.storage.address}"',
                hint="Name the directory or bucket that tacho ship writes to.",
            )

    def all_hours(self) -> Iterator[Hour]:
        """Every complete hour, in all generations."""
        return (hour for hour, _ in self.landed())

    def landed(self) -> Iterator[tuple[Hour, float]]:
        """The same, with the time when the last object of each was written, in s since 1970."""
        for found in self.storage.objects(SERVERS):
            named = _NAME.fullmatch(found.name)
            if named:
                server, day = unquote(named[1]), date.fromisoformat(named[2])
                midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
                begin = micros(midnight) + int(named[3]) * HOUR
                yield Hour(server, named[4], begin, int(named[5])), found.written

    def files(self, table: str, hours: Iterable[Hour]) -> list[str]:
        """The objects of some hours; a table has none for an hour without rows."""
        names = self.storage.existing(hour.path(table) for hour in hours)
        return [self.storage.uri(name) for name in names]

    def is_whole(self, _table: str) -> bool:
        """All rows of objects that count do."""
        return True

    def take(self, hours: Iterable[Hour]) -> int:
        """Removes the objects of hours except the last one of each, after writing a marker.
        Returns the number removed."""
        objects: dict[str, list[str]] = {}
        for found in self.storage.objects():
            table, _, of_hour = found.name.partition("/")
            if table not in (SERVERS, TAKEN):
                objects.setdefault(of_hour, []).append(found.name)
        removed = 0
        for hour in hours:
            marker = hour.path(TAKEN)
            of_hour = objects.get(marker.partition("/")[2], [])
            if of_hour:
                self.storage.put(marker)
            for name in of_hour:
                fault.step()
                self.storage.remove(name)
            removed += len(of_hour)
            fault.step()
        return removed

    def forget(self, server: str) -> int:
        """Removes all objects of a server; returns the number removed."""
        tables = {found.name.partition("/")[0] for found in self.storage.objects()}
        return sum(
            self.storage.remove_all(f"{table}/server={_escaped(server)}")
            for table in sorted(tables)
        )


def hint_of_damage(name: str) -> str:
    """The way to ship an hour again that has this damaged object. tacho ship looks only at
    `servers`, and remembers the hours that it has put. An object that is there stays as it is."""
    hour = f"*/{name.partition('/')[2]}"
    return (
        f'If its server still has this hour, remove all objects "{hour}" and restart tacho ship, '
        "which puts them again."
    )


def hours_table(hours: Sequence[Hour]) -> pa.Table:
    """The hours that count, for files that have rows of other hours too."""
    return pa.table(
        {
            "server": pa.array([hour.server for hour in hours], pa.string()),
            "node": pa.array([hour.node for hour in hours], pa.string()),
            "hour": pa.array([hour.begin for hour in hours], pa.timestamp("us", "UTC")),
            "generation": pa.array([hour.generation for hour in hours], pa.int64()),
        }
    )
