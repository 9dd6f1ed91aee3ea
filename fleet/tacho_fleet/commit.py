"""`tacho fleet commit`: turns landed hours into rows of Iceberg tables.

A batch has the hours that are complete in the landing directory and not committed in that
generation. Each table gets a batch in one commit, `servers` last. If a committer was killed before
the last one, a table may have a part of the batch already: this part is left out. The same commit
removes rows of older generations. So a retry after a crash at any step neither loses nor doubles
rows."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, EqualTo, Or
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table, Transaction
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.transforms import IdentityTransform

from tacho_fleet import fault
from tacho_fleet.errors import FleetError
from tacho_fleet.iceberg import Iceberg, hours_of
from tacho_fleet.landing import SERVERS, Hour, Landing, hint_of_damage
from tacho_fleet.lease import Lease
from tacho_fleet.redaction import Redaction, redactions
from tacho_fleet.storage import read_table
from tacho_fleet.tables import IN_STEP, NAMESPACE
from tacho_fleet.times import DAY, moment
from tacho_fleet.writer import PROPERTIES, append, write

# Sort column of each table within its days, after the server. "hour" keeps the order in which
# the rows of an hour landed: samples are smallest by session.
ORDER = {
    "sample_runs": "hour",
    "load_minute": "minute",
    "ticks": "slot_time",
    "locks": "hour",
    "markers": "time",
    "server": "time",
    "statements": "time",
    "texts": "query_id",
    SERVERS: "hour",
}
BATCH = "tacho.batch"
# Most hours of servers in a batch.
MOST_HOURS = 1000
# Bytes in memory of rows that are read before they are written: a little less than PyIceberg
# puts into one file.
PART = 480 << 20


@dataclass
class Done:
    """Counts of committed hours, rows and batches."""

    hours: int = 0
    rows: int = 0
    batches: int = 0


def commit(landing: Landing, lake: Iceberg, most: int, wait: float) -> Done:
    """Commits new hours, at most `most` of them in a batch."""
    lease = Lease(lake.catalog.engine)
    lease.acquire(wait)
    try:
        fault.step()
        return commit_new(landing, lake, lease, most)
    finally:
        lease.release()


def commit_new(landing: Landing, lake: Iceberg, lease: Lease, most: int = MOST_HOURS) -> Done:
    """The same, called by the holder of the lease."""
    done = Done()
    known = set(lake.hours())
    left_out = redactions(lake.catalog.engine)
    servers = {what.value for what in left_out if what.column == "server"}
    newest: dict[tuple[str, str, int], int] = {}
    for hour in known:
        newest[hour.key] = max(hour.generation, newest.get(hour.key, -1))
    # an older generation is left if the objects of a newer one were removed
    new = [
        hour
        for hour in landing.hours()
        if hour.generation > newest.get(hour.key, -1) and hour.server not in servers
    ]
    committer = _Committer(landing, lake, lease, left_out, known, lake.in_step())
    for hours in _batches(new, most):
        done.rows += committer.commit(hours)
        done.hours += len(hours)
        done.batches += 1
    return done


def _batches(hours: Sequence[Hour], most: int) -> Iterable[Sequence[Hour]]:
    ordered = sorted(hours, key=lambda hour: (hour.begin, hour))
    return [ordered[at : at + most] for at in range(0, len(ordered), most)]


@dataclass
class _Committer:
    """Knows the hours in `servers`. Also knows the snapshots of other tables that have rows of
    these hours only, so it need not read their hours."""

    landing: Landing
    lake: Iceberg
    lease: Lease
    left_out: Sequence[Redaction]
    known: set[Hour]
    in_step: dict[str, int]

    def commit(self, hours: Sequence[Hour]) -> int:
        """Commits a batch; returns the number of rows."""
        name = hashlib.sha256("\n".join(hour.path(SERVERS) for hour in hours).encode()).hexdigest()
        rows, in_step = 0, {}
        wanted = self.known | set(hours)
        for table in ORDER:
            found = self.lake.table(table)
            # This process has the lease, so the table is as it found it. If another one commits
            # to the table later, this commit fails.
            self.lease.renew()
            has = self.hours_of(table, found)
            properties = {BATCH: name} | (
                {IN_STEP: json.dumps(in_step)} if table == SERVERS else {}
            )
            new = [hour for hour in hours if hour not in has]
            rows += self.commit_table(table, found, new, stale(new, has), properties)
            current = snapshot(self.lake.table(table))
            if has <= wanted and current is not None:
                in_step[table] = current
        keys = {hour.key for hour in hours}
        self.known = {hour for hour in self.known if hour.key not in keys} | set(hours)
        self.in_step = in_step
        return rows

    def hours_of(self, name: str, table: Table | None) -> set[Hour]:
        """The hours that a table may have rows of, including hours that `servers` lacks."""
        current = snapshot(table)
        is_known = name == SERVERS or (current and self.in_step.get(name) == current)
        return self.known if is_known else set(hours_of(table))

    def parts(self, table: str, hours: Sequence[Hour]) -> Iterator[pa.Table]:
        """The rows for a table, part by part."""
        for rows in _read(self.landing, table, hours):
            left = rows
            for what in self.left_out:
                left = what.left(table, left)
            yield left

    def commit_table(
        self,
        name: str,
        table: Table | None,
        new: Sequence[Hour],
        old: Sequence[Hour],
        properties: dict[str, str],
    ) -> int:
        """Commits rows of new hours to a table as it was found, and removes rows of old hours."""
        files: list[DataFile] = []
        with ExitStack() as done:
            change = done.enter_context(table.transaction()) if table else None
            for rows in self.parts(name, new):
                self.lease.renew()
                if change is None:
                    table = create(self.lake, name, rows.schema)
                    change = done.enter_context(table.transaction())
                _widen(change, rows.schema)
                files += write(change, rows)
            if change is None:
                return 0
            if old:
                with warnings.catch_warnings():
                    # a table may have no rows of an hour
                    warnings.filterwarnings("ignore", "Delete operation did not match any records")
                    change.delete(_any_of(old), snapshot_properties=properties)
            if files:
                append(change, files, properties)
        return sum(file.record_count for file in files)


def stale(new: Sequence[Hour], known: set[Hour]) -> list[Hour]:
    """Known older generations of the new hours."""
    keys = {hour.key for hour in new}
    return [hour for hour in known if hour.key in keys]


def snapshot(table: Table | None) -> int | None:
    """The number of the current snapshot."""
    current = table.current_snapshot() if table else None
    return current.snapshot_id if current else None


def _read(landing: Landing, name: str, hours: Sequence[Hour]) -> Iterator[pa.Table]:
    """The rows of some hours, sorted, in parts that fit into memory."""
    part: list[pa.Table] = []
    held = 0
    for hour in sorted(hours, key=lambda hour: (hour.begin // DAY, hour.server, hour.begin)):
        for file in landing.files(name, [hour]):
            rows = _read_file(file, name, hour)
            if part and held + rows.nbytes > PART:
                yield _sorted(name, part)
                part, held = [], 0
            part.append(rows)
            held += rows.nbytes
    if part:
        yield _sorted(name, part)


def _read_file(file: str, name: str, hour: Hour) -> pa.Table:
    """The rows of a table's object, with the columns that its name gives."""
    try:
        rows = read_table(file)
    except (OSError, ValueError) as error:
        detail = str(error).splitlines()[0].rstrip(".")
        raise FleetError(
            f'could not read object "{file}"',
            f"{detail}.",
            hint_of_damage(hour.path(name)),
        ) from error
    day = pa.scalar(moment(hour.begin).date(), pa.date32())
    server = pa.scalar(hour.server, pa.string())
    rows = rows.append_column("day", pa.repeat(day, rows.num_rows))
    return rows.append_column("server", pa.repeat(server, rows.num_rows))


def _sorted(name: str, part: list[pa.Table]) -> pa.Table:
    merged = pa.concat_tables(part, promote_options="default").replace_schema_metadata(None)
    if ORDER[name] == "hour":  # hours are read in this order
        return merged
    first = "fingerprint" if name == "statements" else "server"
    return merged.sort_by([(column, "ascending") for column in ("day", first, ORDER[name])])


def create(lake: Iceberg, name: str, schema: pa.Schema) -> Table:
    """Makes a table that is partitioned by day."""
    fields = pyarrow_to_schema(_plain(schema), name_mapping=_in_order(schema))
    day = PartitionField(fields.find_field("day").field_id, 1000, IdentityTransform(), "day")
    return lake.catalog.create_table(
        (NAMESPACE, name), fields, partition_spec=PartitionSpec(day), properties=PROPERTIES
    )


def _in_order(schema: pa.Schema) -> NameMapping:
    """Numbers the columns in order."""
    names = enumerate(schema.names, 1)
    return NameMapping([MappedField(field_id=number, names=[name]) for number, name in names])


def _widen(change: Transaction, schema: pa.Schema) -> None:
    """Adds the columns that the table lacks."""
    known = set(change.table_metadata.schema().column_names)
    if any(column not in known for column in schema.names):
        with change.update_schema() as update:
            update.union_by_name(_plain(schema))


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without field ids: the table assigns its own."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _any_of(hours: Sequence[Hour]) -> BooleanExpression:
    told = [
        And(
            EqualTo("server", hour.server),
            EqualTo("node", hour.node),
            EqualTo("hour", moment(hour.begin).isoformat()),
        )
        for hour in hours
    ]
    return Or(*told) if len(told) > 1 else told[0]


def warehouse_of(address: str, given: str | None) -> str:
    """The directory for files: beside a catalog in SQLite, unless given."""
    if given:
        return given if "://" in given else f"file://{Path(given).resolve()}"
    if "://" not in address:
        raise FleetError(
            f'invalid catalog "{address}"', hint="Write it as sqlite:////FILE or postgresql://…"
        )
    if not address.startswith("sqlite:///"):
        raise FleetError(
            "no warehouse given", hint="Name the directory of the tables' files with --warehouse."
        )
    return f"file://{Path(address.removeprefix('sqlite:///')).resolve().parent / 'warehouse'}"
