"""What a lake must not have: it is remembered in the catalog's database, so that a committer
leaves it out of what lands later too."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, text

# By which column rows are removed, by kind.
KINDS = ("server", "database", "username", "fingerprint")


@dataclass(frozen=True)
class Redaction:
    """Rows with a value in a column; of a fingerprint its texts only."""

    column: str
    value: str

    def concerns(self, table: str, columns: Sequence[str]) -> bool:
        """Does a table have such rows?"""
        return self.column in columns and (self.column != "fingerprint" or table == "texts")

    def typed(self) -> str | int:
        """The value as the column has it."""
        return int(self.value) if self.column == "fingerprint" else self.value

    def left(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows without those."""
        if not self.concerns(table, rows.column_names):
            return rows
        return rows.filter(pc.fill_null(pc.not_equal(rows[self.column], self.typed()), True))


def remember(engine: Engine, what: Redaction) -> None:
    """From now on it is left out."""
    _make(engine)
    with engine.begin() as connection:
        connection.execute(
            text(
                "insert into tacho_fleet_redactions values (:kind, :value) on conflict do nothing"
            ),
            {"kind": what.column, "value": what.value},
        )


def redactions(engine: Engine) -> list[Redaction]:
    """What is left out."""
    _make(engine)
    with engine.begin() as connection:
        rows = connection.execute(text("select kind, value from tacho_fleet_redactions"))
        return [Redaction(*row) for row in rows]


def _make(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "create table if not exists tacho_fleet_redactions (kind varchar(32) not null, "
                "value varchar(320) not null, primary key (kind, value))"
            )
        )
