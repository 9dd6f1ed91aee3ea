"""What `tacho ship` has written: `TABLE/server=NAME/day=DAY/HOUR-NODE-GENERATION.parquet`.
An hour counts when its object of table `servers` is there, and of several generations of
an hour only the greatest. An hour that was taken, since it is in tables of Iceberg, has a
marker `taken/…` and only its object of `servers` left, by which `tacho ship` knows that it was
shipped; it does not count any more."""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa

from tacho_fleet import fault
from tacho_fleet.errors import FleetError
from tacho_fleet.times import HOUR, micros

SERVERS = "servers"
TAKEN = "taken"
_FILE = re.compile(r"(\d\d)-([0-9a-f]{16})-(\d{8,})\.parquet")


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
        """What all its generations have in common."""
        return self.server, self.node, self.begin

    @property
    def end(self) -> int:
        """µs."""
        return self.begin + HOUR

    def path(self, table: str) -> str:
        """The name of its object of a table."""
        time = datetime.fromtimestamp(self.begin // 1_000_000, UTC)
        file = f"{time:%H}-{self.node}-{self.generation:08}.parquet"
        return f"{table}/server={_escaped(self.server)}/day={time:%Y-%m-%d}/{file}"


@dataclass(frozen=True)
class Landing:
    """A directory that `tacho ship` writes to."""

    root: Path

    @staticmethod
    def open(root: str) -> "Landing":
        """The lake in a directory, also as file:// URL."""
        path = Path(unquote(root.removeprefix("file://")))
        if not path.is_dir():
            raise FleetError(
                f'could not read directory "{path}"',
                hint="Name the directory that tacho ship writes to with --lake.",
            )
        return Landing(path)

    def hours(self) -> list[Hour]:
        """Every hour that is complete, in its greatest generation."""
        newest: dict[tuple[str, str, int], Hour] = {}
        for hour in self.all_hours():
            key = (hour.server, hour.node, hour.begin)
            known = newest.get(key)
            if known is None or known.generation < hour.generation:
                newest[key] = hour
        return sorted(hour for hour in newest.values() if not self._marker(hour).exists())

    def all_hours(self) -> Iterator[Hour]:
        """Every hour that is complete, in all generations."""
        for path in (self.root / SERVERS).glob("server=*/day=*/*.parquet"):
            found = _FILE.fullmatch(path.name)
            if found:
                server = unquote(path.parent.parent.name.removeprefix("server="))
                day = date.fromisoformat(path.parent.name.removeprefix("day="))
                midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
                begin = micros(midnight) + int(found[1]) * HOUR
                yield Hour(server, found[2], begin, int(found[3]))

    def files(self, table: str, hours: Iterable[Hour]) -> list[str]:
        """The objects of some hours; a table without rows of an hour has none."""
        paths = (self.root / hour.path(table) for hour in hours)
        return [str(path) for path in paths if path.exists()]

    def is_whole(self, _table: str) -> bool:
        """Rows of objects that count do."""
        return True

    def landed_at(self, hour: Hour) -> float:
        """When the last object of an hour was written, in s since 1970."""
        return (self.root / hour.path(SERVERS)).stat().st_mtime

    def take(self, hour: Hour) -> int:
        """Removes the objects of an hour but the last one, after the marker; how many."""
        objects = [
            path
            for path in self.root.glob(hour.path("*"))
            if path.parts[len(self.root.parts)] not in (SERVERS, TAKEN)
        ]
        if objects:
            marker = self._marker(hour)
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        for path in objects:
            fault.step()
            path.unlink(missing_ok=True)
        return len(objects)

    def forget(self, server: str) -> int:
        """Removes all that a server has put; how many objects."""
        objects = 0
        for place in self.root.glob(f"*/server={_escaped(server)}"):
            objects += sum(1 for path in place.rglob("*") if path.is_file())
            shutil.rmtree(place)
        return objects

    def _marker(self, hour: Hour) -> Path:
        return self.root / hour.path(TAKEN)


def hours_table(hours: Sequence[Hour]) -> pa.Table:
    """What rows count of files that have others too."""
    return pa.table(
        {
            "server": pa.array([hour.server for hour in hours], pa.string()),
            "node": pa.array([hour.node for hour in hours], pa.string()),
            "hour": pa.array([hour.begin for hour in hours], pa.timestamp("us", "UTC")),
            "generation": pa.array([hour.generation for hour in hours], pa.int64()),
        }
    )
