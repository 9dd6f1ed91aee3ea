"""The Iceberg tables of a lake, for programs that change them: a catalog in SQLite (one machine)
or PostgreSQL (a team), files in its warehouse. An hour counts once its row of table `servers` is
committed, which happens last; rows of its other generations do not count."""

import json

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from tacho_fleet import fault
from tacho_fleet.catalogs import driven, opening
from tacho_fleet.landing import SERVERS, Hour
from tacho_fleet.lease import taken_over
from tacho_fleet.storage import properties
from tacho_fleet.tables import IN_STEP, NAMESPACE


class _Catalog(SqlCatalog):
    """The catalog, with steps at which tests kill the process."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Commits written files; their rows count once the catalog names the files."""
        fault.step()
        try:
            response = super().commit_table(table, requirements, updates)
        except CommitFailedException as error:
            # PyIceberg would retry it on top of the other commit, which would double the
            # rows
            raise taken_over() from error
        fault.step()
        return response

    def create_table(self, *told: object, **more: object) -> Table:
        """Makes a new table."""
        fault.step()
        try:
            table = super().create_table(*told, **more)
        except TableAlreadyExistsError as error:
            raise taken_over() from error
        fault.step()
        return table


class Iceberg:
    """A lake that can be changed."""

    def __init__(self, address: str, warehouse: str | None = None) -> None:
        """Opens the catalog; a warehouse is needed only to make tables."""
        where = {"warehouse": warehouse} if warehouse else {}
        with opening():
            self.catalog = _Catalog(NAMESPACE, uri=driven(address), **where, **properties())
            self.catalog.create_namespace_if_not_exists(NAMESPACE)

    def table(self, name: str) -> Table | None:
        """A table, if it exists."""
        try:
            return self.catalog.load_table((NAMESPACE, name))
        except NoSuchTableError:
            return None

    def hours(self) -> list[Hour]:
        """Every committed hour."""
        return hours_of(self.table(SERVERS))

    def in_step(self) -> dict[str, int]:
        """For each table the snapshot that has only rows of the hours in `servers`, as the last
        commit of `servers` says."""
        table = self.table(SERVERS)
        current = table.current_snapshot() if table else None
        summary = current.summary if current else None
        return json.loads(summary.additional_properties.get(IN_STEP, "{}") if summary else "{}")


def hours_of(table: Table | None) -> list[Hour]:
    """The hours of the rows in a table."""
    if table is None:
        return []
    fields = ("server", "node", "hour", "generation")
    rows = table.scan(selected_fields=fields).to_arrow().group_by(list(fields)).aggregate([])
    hour = rows["hour"].cast(pa.int64()).to_pylist()
    other = (rows[name].to_pylist() for name in ("server", "node", "generation"))
    return sorted(
        Hour(server, node, begin, generation)
        for server, node, generation, begin in zip(*other, hour, strict=True)
    )
