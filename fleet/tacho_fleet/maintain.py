"""`tacho fleet expire` removes data that a lake no longer needs; `tacho fleet redact` removes data
that it must not have. Both hold the committer's lease, may be killed at any step, and are then run
again."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, EqualTo, In
from pyiceberg.table import Table

from tacho_fleet import fault
from tacho_fleet.commit import ORDER, commit_new
from tacho_fleet.errors import FleetError
from tacho_fleet.iceberg import Iceberg
from tacho_fleet.landing import Landing
from tacho_fleet.lease import Lease
from tacho_fleet.redaction import Redaction, remember
from tacho_fleet.storage import Storage, read_table


@dataclass
class Removed:
    """Counts of removed data."""

    rows: int = 0
    snapshots: int = 0
    files: int = 0
    objects: int = 0
    # For a redaction: where its value was searched, and where it still is.
    searched: str = ""
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line, and the result of a search."""
        removed = (
            f"removed rows {self.rows}, snapshots {self.snapshots}, files {self.files}, "
            f"landed objects {self.objects}"
        )
        return "\n".join([removed, *([self.searched] if self.searched else []), *self.found])


def expire(lake: Iceberg, landing: Landing | None, grace: float, wait: float) -> Removed:
    """Removes data that was replaced or committed more than `grace` seconds ago."""
    lease = Lease(lake.catalog.engine)
    lease.acquire(wait)
    try:
        return _expire(lake, landing, time.time() - grace, lease)
    finally:
        lease.release()


def redact(lake: Iceberg, landing: Landing, what: Redaction, wait: float) -> Removed:
    """Removes all rows with a value, and everything that still contains them."""
    lease = Lease(lake.catalog.engine)
    lease.acquire(wait)
    try:
        remember(lake.catalog.engine, what)
        fault.step()
        commit_new(landing, lake, lease)
        rows = sum(_delete(lake, name, what) for name in ORDER)
        removed = _expire(lake, landing, time.time() + 1, lease)
        removed.rows = rows
        if what.column == "server":
            removed.objects += landing.forget(what.value)
        _search(lake, landing, what, removed)
        return removed
    finally:
        lease.release()


def _delete(lake: Iceberg, name: str, what: Redaction) -> int:
    """Removes the rows of a table that have or name the value; returns their number."""
    removed = 0
    for condition in _conditions(lake.table(name), name, what):
        table = lake.table(name)
        rows = table.scan(row_filter=condition, selected_fields=("server",)).to_arrow().num_rows
        if rows:
            table.delete(condition)
        removed += rows
    return removed


# Most texts in one condition.
_AT_ONCE = 100


def _conditions(table: Table | None, name: str, what: Redaction) -> Iterator[BooleanExpression]:
    if table is None:
        return
    known = table.schema().column_names
    for column in what.columns(name, known):
        yield EqualTo(column, what.typed())
    for column in what.written(name, known):
        texts = table.scan(selected_fields=(column,)).to_arrow()[column]
        named = pc.unique(texts.filter(what.named(texts))).to_pylist()
        for at in range(0, len(named), _AT_ONCE):
            yield In(column, named[at : at + _AT_ONCE])


def _search(lake: Iceberg, landing: Landing, what: Redaction, removed: Removed) -> None:
    """Searches all tables, and the names and rows of all landed objects, for the value."""
    tables = 0
    for name in ORDER:
        table = lake.table(name)
        if table is not None:
            tables += 1
            counts: Counter[str] = Counter()
            for batch in table.scan().to_arrow_batch_reader():
                counts.update(what.found(pa.Table.from_batches([batch]), name))
            removed.found += _told(counts, f'table "{name}"')
    objects = landing.storage.objects()
    for found in objects:
        removed.found += _found_in(landing, found.name, what)
    removed.searched = f"searched tables {tables}, landed objects {len(objects)}: " + (
        "found the value" if removed.found else "found nothing"
    )


def _found_in(landing: Landing, name: str, what: Redaction) -> list[str]:
    """Places of the value in a landed object."""
    where = f'object "{name}"'
    table, *directories = name.split("/")
    server = next((part for part in directories if part.startswith("server=")), "server=")
    if what.is_of(unquote(server).removeprefix("server=")):
        return [f"found in the name of {where}"]
    if table not in ORDER or not name.endswith(".parquet"):
        return []
    rows = read_table(landing.storage.uri(name))
    return _told(what.found(rows, table), where)


def _told(counts: Mapping[str, int], where: str) -> list[str]:
    return [
        f'found in column "{column}" of {where}: rows {count}' for column, count in counts.items()
    ]


def _expire(lake: Iceberg, landing: Landing | None, limit: float, lease: Lease) -> Removed:
    removed = Removed()
    for name in ORDER:
        lease.renew()
        table = lake.table(name)
        if table is None:
            continue
        removed.snapshots += _expire_snapshots(table, limit)
        table = lake.table(name) or table
        storage = Storage.open(table.location())
        for orphan in _orphans(table, storage, limit):
            storage.remove(orphan)
            fault.step()
            removed.files += 1
    if landing:
        removed.objects += _take(lake, landing, limit)
    return removed


def _expire_snapshots(table: Table, limit: float) -> int:
    """Removes all snapshots made before `limit`, except the newest."""
    current = table.current_snapshot()
    old = [
        shot.snapshot_id
        for shot in table.snapshots()
        if shot.timestamp_ms < limit * 1000 and shot != current
    ]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    return len(old)


def _orphans(table: Table, storage: Storage, limit: float) -> list[str]:
    """Files of a table that no snapshot names and that no committer may be writing."""
    known = {storage.name_of(text) for text in _files(table)}
    found = storage.objects()
    if storage.name_of(table.metadata_location) not in {each.name for each in found}:
        # otherwise names of found files are not comparable with known ones
        raise FleetError(f'could not find file "{table.metadata_location}"')
    return [each.name for each in found if each.name not in known and each.written < limit]


def _files(table: Table) -> Iterator[str]:
    yield table.metadata_location
    for entry in table.metadata.metadata_log:
        yield entry.metadata_file
    for shot in table.snapshots():
        yield shot.manifest_list
        for manifest in shot.manifests(table.io):
            yield manifest.manifest_path
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file.file_path


def _take(lake: Iceberg, landing: Landing, limit: float) -> int:
    """Removes objects of hours that are committed in this generation or a later one."""
    committed = {hour.key: hour.generation for hour in lake.hours()}
    taken = [
        hour
        for hour, landed_at in landing.landed()
        if committed.get(hour.key, -1) >= hour.generation and landed_at < limit
    ]
    return landing.take(taken)
