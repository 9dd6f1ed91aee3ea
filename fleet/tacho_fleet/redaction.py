"""Data that a lake must not have. Redactions are stored in the catalog's database, so that
committers also leave such data out of hours that land later."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, text

# Column that selects the rows to remove, by kind.
KINDS = ("server", "database", "username", "fingerprint")
# Columns with other names that have a value of a kind.
_OTHER = {"database": {"server": ("object",)}, "server": {"servers": ("server_name",)}}
# Texts that users have written, by table: they may name a tenant of another database.
_WRITTEN = {
    "texts": ("query_text",),
    "markers": ("detail", "object_name", "old_value", "new_value"),
    "locks": ("blocker_gid",),
}
_TENANTS = ("database", "username")


@dataclass(frozen=True)
class Redaction:
    """Rows with a value in a column, and rows whose text names a tenant. For a fingerprint only
    its texts."""

    column: str
    value: str

    def columns(self, table: str, known: Sequence[str]) -> list[str]:
        """The columns of a table in which the value selects a row."""
        if self.column == "fingerprint" and table != "texts":
            return []
        named = (self.column, *_OTHER.get(self.column, {}).get(table, ()))
        return [column for column in named if column in known]

    def written(self, table: str, known: Sequence[str]) -> list[str]:
        """The columns of a table whose text may name the value."""
        columns = _WRITTEN.get(table, ()) if self.column in _TENANTS else ()
        return [column for column in columns if column in known]

    def typed(self) -> str | int:
        """The value with the type of the column."""
        return int(self.value) if self.column == "fingerprint" else self.value

    def is_of(self, server: str) -> bool:
        """Does the name of a server contain the value?"""
        if self.column == "server":
            return server == self.value
        return self.column in _TENANTS and bool(self.named(pa.array([server]))[0].as_py())

    def named(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Marks the texts that contain the value as a word."""
        word = re.escape(self.value)
        pattern = rf"(?i)(^|[^\w$]){word}($|[^\w$])"
        return pc.fill_null(pc.match_substring_regex(texts, pattern), False)

    def left(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows without the redacted ones."""
        for column in self.columns(table, rows.column_names):
            rows = rows.filter(pc.fill_null(pc.not_equal(rows[column], self.typed()), True))
        for column in self.written(table, rows.column_names):
            rows = rows.filter(pc.invert(self.named(rows[column])))
        return rows

    def found(self, rows: pa.Table, table: str) -> dict[str, int]:
        """Number of rows with the value, by column; for a tenant in any text, as a word."""
        columns: Iterable[str] = self.columns(table, rows.column_names)
        if self.column not in _TENANTS:
            counts = {name: pc.sum(pc.equal(rows[name], self.typed())).as_py() for name in columns}
        else:
            texts = [name for name in rows.column_names if pa.types.is_string(rows[name].type)
                     or pa.types.is_large_string(rows[name].type)]  # fmt: skip
            counts = {name: pc.sum(self.named(rows[name])).as_py() for name in texts}
        return {name: count for name, count in counts.items() if count}


def remember(engine: Engine, what: Redaction) -> None:
    """Stores a redaction for later commits."""
    _make(engine)
    with engine.begin() as connection:
        connection.execute(
            text(
                "insert into tacho_fleet_redactions values (:kind, :value) on conflict do nothing"
            ),
            {"kind": what.column, "value": what.value},
        )


def redactions(engine: Engine) -> list[Redaction]:
    """All stored redactions."""
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
