"""Labels of servers as dimensions: a server has at most one value of each label."""

from collections.abc import Callable

from tacho_fleet.engine import NULL_TEXT
from tacho_fleet.filters import case

# Prefix of a dimension that is a label.
LABEL = "label:"
# Dimensions that are labels, each with its value by server.
Labels = tuple[tuple[str, dict[str, str]], ...]


def is_label(dimension: str | None) -> bool:
    """Is the dimension a label?"""
    return dimension is not None and dimension.startswith(LABEL)


def column(values: dict[str, str], server: str, constant: Callable[[str], str]) -> str:
    """SQL of the value for the server in a column, with constants in the form of the engine."""
    servers: dict[str, list[str]] = {}
    for name, value in values.items():
        servers.setdefault(value, []).append(constant(name))
    told = [(constant(v), f"{server} IN ({', '.join(of)})") for v, of in servers.items()]
    return case(told, NULL_TEXT)
