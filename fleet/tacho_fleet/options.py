"""Options of commands, with the names that the readers use."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence

from tacho_fleet.engines import ENGINES
from tacho_fleet.load import DIMENSIONS, SCOPES
from tacho_fleet.statements import FILTERS as STATEMENT_FILTERS
from tacho_fleet.views import DIALECTS

LANDING = "destination of tacho ship: a directory, or s3://BUCKET/PREFIX"


def whole(least: int) -> Callable[[str], int]:
    """Parses a whole number that is at least `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f'invalid value "{text}", give a whole number from {least} on')
        return int(text)

    return number


def seconds(text: str) -> float:
    """Parses a waiting time."""
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found < float("inf"):
        raise ArgumentTypeError(f'invalid value "{text}", give seconds')
    return found


def add_dimension(parser: ArgumentParser, default: str | None, known: Sequence[str]) -> None:
    """Adds the dimension of the rows of an answer."""
    told = f"[default: {default}]" if default else "[default: all in one row]"
    parser.add_argument(
        "dimension",
        nargs="?",
        default=default,
        metavar="DIMENSION",
        help=f"{', '.join(known)}, or label:KEY {told}",
    )


def add_shared(parser: ArgumentParser) -> None:
    """Adds the options of every question."""
    parser.add_argument(
        "-l",
        "--lake",
        metavar="LAKE",
        help="destination of tacho ship: a directory, s3://BUCKET/PREFIX or az://…; or the catalog "
        "of tacho fleet commit [default: $TACHO_LAKE]",
    )
    parser.add_argument(
        "-s",
        "--since",
        metavar="TIME",
        help='1h, 03:12, "yesterday 14:00" [default: 1h before]',
    )
    parser.add_argument(
        "-u", "--until", metavar="TIME", help="exclusive; now [default: end of the newest hour]"
    )
    parser.add_argument("--server", metavar="FILTER", help="names of servers")
    parser.add_argument(
        "--label", metavar="KEY=FILTER", action="append", default=[], help="labels of servers"
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="duckdb", help="engine that reads tables of Iceberg"
    )
    parser.add_argument(
        "--memory-limit-mb",
        type=whole(1),
        default=1024,
        metavar="MB",
        help="of DuckDB, which makes the answer [default: 1024]",
    )
    parser.add_argument("--json", action="store_true", help="one array of objects")
    parser.add_argument("--wide", action="store_true", help="cut no text")


def add_commit(parser: ArgumentParser) -> None:
    """Adds the options of committing."""
    parser.add_argument("landing", metavar="DIR", help=LANDING)
    add_catalog(parser)
    parser.add_argument(
        "--most-hours",
        type=whole(1),
        default=1000,
        metavar="N",
        help="of servers, in a batch [default: 1000]",
    )


def add_catalog(parser: ArgumentParser) -> None:
    """Adds the options of commands that change tables."""
    parser.add_argument(
        "--catalog", metavar="URL", required=True, help="sqlite:////FILE or postgresql://…"
    )
    parser.add_argument(
        "--warehouse", metavar="DIR", help="files of the tables [default: beside FILE]"
    )
    parser.add_argument(
        "--wait", type=seconds, default=0, metavar="SECONDS", help="for another committer"
    )


def add_expire(parser: ArgumentParser) -> None:
    """Adds the options of removing data that is no longer needed."""
    parser.add_argument("landing", nargs="?", metavar="DIR", help=LANDING)
    add_catalog(parser)
    parser.add_argument(
        "--grace", default="1d", metavar="INTERVAL", help="younger data stays [default: 1d]"
    )


def add_redact(parser: ArgumentParser) -> None:
    """Adds the options of removing data that must not be there."""
    parser.add_argument("landing", metavar="DIR", help=LANDING)
    add_catalog(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    for kind in ("server", "database", "username"):
        what.add_argument(f"--{kind}", metavar="NAME", help=f"all rows of a {kind}")
    what.add_argument("--fingerprint", type=int, metavar="NUMBER", help="texts of a query")


def add_statements(parser: ArgumentParser) -> None:
    """Adds the options of questions about statistics of statements."""
    add_shared(parser)
    parser.add_argument("--bucket", metavar="INTERVAL", help="10s, 5m, 1d")
    parser.add_argument("-n", "--n", default="10", metavar="N", help="most lines, or all")
    orders = "time, mean, p95, p99, cpu, blocks, or a counter, such as calls"
    parser.add_argument("--order-by", default="time", metavar="ORDER", help=orders)
    filters = parser.add_argument_group("filters: a value, a list a,b, (null), or !a,!b")
    for name in STATEMENT_FILTERS:
        filters.add_argument(f"--{name.replace('_', '-')}", metavar="FILTER")


def add_views(parser: ArgumentParser) -> None:
    """Adds the options of views for another engine."""
    parser.add_argument("for_engine", choices=DIALECTS, metavar="ENGINE", help=", ".join(DIALECTS))
    parser.add_argument(
        "--tables",
        metavar="SCHEMA",
        default="tacho",
        help="schema of the tables in the engine, such as lake.tacho, or empty [default: tacho]",
    )


def add_windows(parser: ArgumentParser) -> None:
    """Adds the options of two windows; --since and --until belong to the later one."""
    told = ("begin of the earlier window [default: a day before the later one]", "its end")
    for name, text in zip(("since", "until"), told, strict=True):
        parser.add_argument(f"--{name}-1", metavar="TIME", help=text)
        parser.add_argument(f"--{name}-2", metavar="TIME", help="the same as --" + name)


def add_samples(parser: ArgumentParser, by: bool = False) -> None:
    """Adds the options of questions about samples."""
    add_shared(parser)
    parser.add_argument("--bucket", metavar="INTERVAL", help="10s, 5m, 1d")
    parser.add_argument("--scope", choices=SCOPES, default="load", help="which samples count")
    parser.add_argument("--by-leader", action="store_true", help="leave parallel workers out")
    parser.add_argument("--minutes", action="store_true", help="from load_minute, which is small")
    if by:
        parser.add_argument("--by", metavar="DIMENSION", help="split by a dimension")
        parser.add_argument("-n", "--n", default="10", metavar="N", help="most keys, or all")
    filters = parser.add_argument_group("filters: a value, a list a,b, (null), or !a,!b")
    for name in DIMENSIONS[1:]:
        filters.add_argument(f"--{name.replace('_', '-')}", metavar="FILTER")
