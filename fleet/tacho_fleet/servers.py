"""What is known of each server of a lake."""

from tacho_fleet import load
from tacho_fleet.engine import Row
from tacho_fleet.session import Session
from tacho_fleet.times import HOUR

COLUMNS = ("server", "host", "labels", "nodes", "hours", "first_hour", "last_hour", "vcpus",
           "ticks_expected", "ticks_observed", "ticks_failed", "coverage_pct", "damage",
           "shipper")  # fmt: skip
SHOWN = (("server", "server"), ("host", "host"), ("labels", "labels"), ("hours", "hours"),
         ("last_hour", "last_hour"), ("vcpus", "vcpus"),
         ("coverage_pct", "coverage"))  # fmt: skip


def rows(session: Session) -> list[Row]:
    """A row for each server; ticks and coverage are those of the window."""
    load.Load(session.engine, session.question(), HOUR, load.MAX_BUCKETS).whole()
    session.engine.fill("known_servers", "known_servers")
    found = session.engine.rows("FROM server_rows()")
    for row in found:
        hours = [hour for hour in session.hours if hour.server == row["server"]]
        row["nodes"] = len({hour.node for hour in hours})
        row["hours"] = len(hours)
        row["first_hour"] = min(hour.begin for hour in hours)
        row["last_hour"] = max(hour.begin for hour in hours)
    return found
