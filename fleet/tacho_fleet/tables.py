"""The Iceberg tables of a lake, for questions. Reads the files that the catalog names directly,
because importing PyIceberg takes longer than most questions."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from urllib.parse import quote, unquote

from tacho_fleet import avro, storage
from tacho_fleet.catalogs import driven, opening
from tacho_fleet.engine import connect
from tacho_fleet.filters import quoted
from tacho_fleet.landing import SERVERS, Hour

NAMESPACE = "tacho"
# Property of a snapshot of `servers`: for each other table the snapshot that has only
# rows of the hours in `servers`.
IN_STEP = "tacho.snapshots"
_FIND = (
    "select table_name, metadata_location from iceberg_tables "
    f"where catalog_name = '{NAMESPACE}' and table_namespace = '{NAMESPACE}'"
)
_MEMORY_MB = 256


class Tables:
    """A lake that can be queried like a directory."""

    def __init__(self, address: str) -> None:
        """Reads the catalog once: `servers`, which is committed last, is then never newer than
        others."""
        self.locations = _found(address)
        self.metadata = cache(self._metadata)

    def location(self, name: str) -> str | None:
        """The location of a table's metadata, if it exists."""
        return self.locations.get(name)

    def _metadata(self, name: str) -> dict:
        location = self.location(name)
        return json.loads(storage.read(location)) if location else {}

    def snapshot(self, name: str) -> dict:
        """The current snapshot, if there is one."""
        known = self.metadata(name)
        current = known.get("current-snapshot-id")
        return next((s for s in known.get("snapshots", ()) if s["snapshot-id"] == current), {})

    def is_whole(self, name: str) -> bool:
        """Do all rows of a table count?"""
        told = json.loads(self.snapshot(SERVERS).get("summary", {}).get(IN_STEP, "{}"))
        current = self.snapshot(name).get("snapshot-id")
        return current is not None and told.get(name) == current

    def hours(self) -> list[Hour]:
        """Every committed hour."""
        files = ", ".join(quoted(path) for path, _ in self._files(SERVERS))
        if not files:
            return []
        with closing(connect(_MEMORY_MB)) as connection:
            storage.register(connection, [path for path, _ in self._files(SERVERS)])
            rows = connection.execute(
                "select distinct server, node, epoch_us(hour), generation "
                f"from read_parquet([{files}], hive_partitioning = false) order by all"
            ).fetchall()
        return [Hour(*row) for row in rows]

    def files(self, name: str, hours: Sequence[Hour]) -> list[str]:
        """The files that may have rows of some hours."""
        if not hours:
            return []
        first, last = min(hour.begin for hour in hours), max(hour.begin for hour in hours)
        return [
            path for path, (since, until) in self._files(name) if since <= last and until >= first
        ]

    def _files(self, name: str) -> list[tuple[str, tuple[int, int]]]:
        """The files of a table, each with its first and last hour."""
        snapshot = self.snapshot(name)
        if not snapshot:
            return []
        field = _field(self.metadata(name), "hour")
        manifests = avro.records(storage.read(snapshot["manifest-list"]))
        entries = (
            entry["data_file"]
            for manifest in manifests
            for entry in avro.records(storage.read(str(manifest["manifest_path"])))
            if entry["status"] != _DELETED
        )
        return [(storage.reachable(file["file_path"]), _range(file, field)) for file in entries]


_DELETED = 2
_ALWAYS = (-(1 << 63), (1 << 63) - 1)


def _found(address: str) -> dict[str, str]:
    """The metadata location of each table."""
    with opening("iceberg_tables"):  # without the table there is none
        if not address.startswith("sqlite:///"):
            return _found_by_sqlalchemy(address)
        place = quote(unquote(address.removeprefix("sqlite:///")))
        with closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as connection:
            return dict(connection.execute(_FIND).fetchall())
    return {}


def _found_by_sqlalchemy(address: str) -> dict[str, str]:
    from sqlalchemy import create_engine, text  # noqa: PLC0415

    with create_engine(driven(address)).connect() as connection:
        return {name: location for name, location in connection.execute(text(_FIND))}


def _field(metadata: dict, name: str) -> int:
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    fields = schemas[metadata["current-schema-id"]]["fields"]
    return next(field["id"] for field in fields if field["name"] == name)


def _range(file: dict, field: int) -> tuple[int, int]:
    """The least and greatest value of a time column; all times if not known."""
    told = []
    for name, unknown in zip(("lower_bounds", "upper_bounds"), _ALWAYS, strict=True):
        bounds = {bound["key"]: bound["value"] for bound in file[name] or ()}
        value = bounds.get(field)
        told.append(unknown if value is None else int.from_bytes(value, "little", signed=True))
    return told[0], told[1]
