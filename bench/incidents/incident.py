"""Incidents: a load, a cause, and the finding that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server import Server

# An incident is a generator: it starts its load and yields; makes the cause and yields,
# perhaps with an innocent change that comes right after the cause; then tidies up.
Steps = Iterator[Callable[[], object] | None]
Play = Callable[[Server], Steps]

@dataclass
class Incident:
    """An incident: the steps that cause it, and the findings that are required."""

    name: str
    play: Play
    # The cause in words.
    cause: str
    # Matches "RULE|OBJECT" of the finding that names the cause. OBJECT is the text of
    # the query for clients and statements, role and application for holders of locks.
    finds: str
    # Further settings of the server.
    conf: str
    # Seconds that the finding may be off.
    within: float


# All incidents by their names, in the order of the table.
INCIDENTS: dict[str, Incident] = {}


def incident(cause: str, finds: str, conf: str = "", within: float = 2) -> Callable[[Play], Play]:
    """Enters a play into the table, by its name."""

    def enter(play: Play) -> Play:
        name = play.__name__
        INCIDENTS[name] = Incident(name, play, cause, finds, conf, within)
        return play

    return enter
