"""One committer at a time: a row in the catalog's database names it and the end of its lease. If
it is killed, the others wait until then."""

import os
import socket
import time
from uuid import uuid4

from sqlalchemy import Engine, text

from tacho_fleet.errors import FleetError

SECONDS = 600
_TURN = 0.5


def taken_over() -> FleetError:
    """The error for a committer that slept too long, or whose table another program changed."""
    return FleetError(
        "another committer has taken over",
        "This one took longer for a step than the lease lasts, or another program has changed the "
        "table.",
        "Its commits count; run it again for the rest.",
    )


class Lease:
    """The right to commit."""

    def __init__(self, engine: Engine, seconds: float = SECONDS) -> None:
        """A lease that is not held yet."""
        self.engine, self.seconds = engine, seconds
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"
        with engine.begin() as connection:
            connection.execute(
                text(
                    "create table if not exists tacho_fleet_lease ("
                    "name varchar(32) primary key, holder varchar(320) not null, "
                    "ends_at double precision not null)"
                )
            )

    def acquire(self, wait: float) -> None:
        """Takes the lease; waits for another holder for at most `wait` seconds."""
        end = time.monotonic() + wait
        while not self._take():
            if time.monotonic() >= end:
                raise FleetError(
                    "another committer is at work",
                    f"It is {self._other()}.",
                    "Wait for it with --wait; one that was killed counts for ten minutes.",
                )
            time.sleep(_TURN)

    def renew(self) -> None:
        """Extends the lease. Raises an error if another committer holds it or has held it since,
        because the known state of the tables is then outdated."""
        renewed = self._run(
            "update tacho_fleet_lease set ends_at = :until "
            "where name = 'commit' and holder = :holder"
        )
        if renewed != 1:
            raise taken_over()

    def release(self) -> None:
        """Gives the lease up."""
        self._run("delete from tacho_fleet_lease where holder = :holder")

    def _take(self) -> bool:
        renewed = self._run(
            "update tacho_fleet_lease set holder = :holder, ends_at = :until "
            "where name = 'commit' and (holder = :holder or ends_at < :now)"
        )
        return renewed == 1 or (
            self._run(
                "insert into tacho_fleet_lease select 'commit', :holder, :until "
                "where not exists (select 1 from tacho_fleet_lease where name = 'commit') "
                "on conflict do nothing"
            )
            == 1
        )

    def _run(self, sql: str) -> int:
        now = time.time()
        values = {"holder": self.holder, "now": now, "until": now + self.seconds}
        with self.engine.begin() as connection:
            return connection.execute(text(sql), values).rowcount

    def _other(self) -> str:
        with self.engine.begin() as connection:
            holder = connection.execute(text("select holder from tacho_fleet_lease")).scalar()
        return str(holder).rpartition(":")[0] if holder else "gone"
