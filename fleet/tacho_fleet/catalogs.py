"""Addresses of catalogs, and errors of opening one."""

from collections.abc import Iterator
from contextlib import contextmanager

from tacho_fleet.errors import FleetError

_DRIVER = "postgresql+psycopg2://"


def driven(address: str) -> str:
    """The address with the installed driver: SQLAlchemy would take another one."""
    scheme, separator, rest = address.partition("://")
    return _DRIVER + rest if separator and scheme in ("postgresql", "postgres") else address


@contextmanager
def opening(*ignored: str) -> Iterator[None]:
    """Reports why a catalog cannot be opened, unless the reason is an ignored one."""
    try:
        yield
    except FleetError:
        raise
    except ModuleNotFoundError as error:
        hint = "Install what it needs: pip install './fleet[postgres]'."
        raise FleetError("could not open the catalog", f"{error}.", hint) from error
    except Exception as error:  # each driver has its own
        detail = str(error).splitlines()[0].rstrip(".")
        if any(text in detail for text in ignored):
            return
        hint = "Write it as sqlite:////FILE or postgresql://USER@HOST/DATABASE."
        raise FleetError("could not open the catalog", f"{detail}.", hint) from error
