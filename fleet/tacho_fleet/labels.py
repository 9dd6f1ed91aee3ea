"""Labels of servers as dimensions: of each label a server has one value, or none."""

from collections.abc import Callable

from tacho_fleet.engine import NULL_TEXT
from tacho_fleet.filters import case

# What a dimension begins with that is a label.
LABEL = "label:"
# Dimensions that are labels, each with what servers have.
Labels = tuple[tuple[str, dict[str, str]], ...]


def is_label(dimension: str | None) -> bool:
    """Is it one of labels?"""
    return dimension is not None and dimension.startswith(LABEL)


def column(values: dict[str, str], server: str, constant: Callable[[str], str]) -> str:
    """SQL of the value that belongs to the server of a column, with constants as an engine
    writes them."""
    servers: dict[str, list[str]] = {}
    for name, value in values.items():
        servers.setdefault(value, []).append(constant(name))
    told = [(constant(v), f"{server} IN ({', '.join(of)})") for v, of in servers.items()]
    return case(told, NULL_TEXT)
