"""The servers of a lake with their attributes."""

from dataclasses import replace

from tacho_fleet import load
from tacho_fleet.engine import Row
from tacho_fleet.session import Session
from tacho_fleet.times import HOUR

COLUMNS = ("server", "host", "labels", "nodes", "hours", "hours_missing", "first_hour", "last_hour",
           "vcpus", "ticks_expected", "ticks_observed", "ticks_failed", "coverage_pct", "damage",
           "shipper")  # fmt: skip
SHOWN = (("server", "server"), ("host", "host"), ("labels", "labels"), ("hours", "hours"),
         ("hours_missing", "missing"), ("last_hour", "last_hour"), ("vcpus", "vcpus"),
         ("coverage_pct", "coverage"))  # fmt: skip


def rows(session: Session) -> list[Row]:
    """A row for each server; ticks and coverage cover the window. Hours count as missing from a
    server's first hour to the newest hour of all."""
    all_servers = tuple(sorted({hour.server for hour in session.hours}))
    question = replace(session.question(), servers=all_servers)
    load.Load(session.engine, question, HOUR, load.MAX_BUCKETS).whole()
    session.engine.fill("known_servers", "known_servers")
    found = session.engine.rows("FROM server_rows()")
    end = max((hour.end for hour in session.hours), default=0)
    for row in found:
        hours = [hour for hour in session.hours if hour.server == row["server"]]
        begins = {hour.begin for hour in hours}
        row["nodes"] = len({hour.node for hour in hours})
        row["hours"] = len(hours)
        row["first_hour"], row["last_hour"] = min(begins), max(begins)
        row["hours_missing"] = (end - min(begins)) // HOUR - len(begins)
    return found
