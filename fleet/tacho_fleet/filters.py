"""Filters as text: one value, a list, `(null)`, a negation. `a,b` is a or b; `!a` is everything
but a, including null. Values with commas or quotes, or that begin with `!` or `(`, are written in
double quotes, with quotes in them doubled."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tacho_fleet.errors import FleetError

_ITEM = re.compile(r'\s*(!?)\s*(?:"((?:[^"]|"")*)"|([^,"][^,]*|))\s*(,|$)')


@dataclass(frozen=True)
class Filter:
    """The wanted or unwanted values of a dimension; `None` is null."""

    values: tuple[str | None, ...]
    negated: bool

    def sql(self, column: str, constant: Callable[[str], str]) -> str:
        """The condition on a column, with constants in the form of the engine."""
        known = [constant(value) for value in self.values if value is not None]
        told = [f"{column} IN ({', '.join(known)})"] if known else []
        told += [f"{column} IS NULL"] if None in self.values else []
        wanted = f"coalesce({' OR '.join(told)}, false)"
        return f"NOT {wanted}" if self.negated else wanted

    def accepts(self, value: str | None) -> bool:
        """Is this value wanted?"""
        return (value in self.values) != self.negated


def quoted(text: str) -> str:
    """A constant in SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    """A name in SQL."""
    return '"' + text.replace('"', '""') + '"'


def case(conditions: Iterable[tuple[object, str]], other: object) -> str:
    """SQL of the first value whose condition is true."""
    told = " ".join(f"WHEN {condition} THEN {value}" for value, condition in conditions)
    return f"CASE {told} ELSE {other} END" if told else str(other)


def parse(name: str, text: str) -> Filter:
    """The filter of dimension `name`."""
    items: list[tuple[bool, str | None]] = []
    at, more = 0, True
    while more:
        found = _ITEM.match(text, at)
        if not found:
            raise FleetError(
                f'filter "{name}" has text beside a quoted value',
                hint="Separate values by commas.",
            )
        items.append((found[1] == "!", _value(name, found)))
        at, more = found.end(), found[4] == ","
    negated = {item[0] for item in items}
    if len(negated) > 1:
        raise FleetError(
            f'filter "{name}" mixes included and excluded values',
            hint="Write !a,!b to exclude both, or a,b to include either.",
        )
    return Filter(tuple(item[1] for item in items), negated == {True})


def _value(name: str, found: re.Match[str]) -> str | None:
    if found[2] is not None:
        return found[2].replace('""', '"')
    value = found[3].strip()
    if not value:
        raise FleetError(
            f'filter "{name}" has an empty value',
            hint='Write (null) for rows without a value, "" for an empty string.',
        )
    return None if value == "(null)" else value
