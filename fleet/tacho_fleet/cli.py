"""The command line. Exit codes: 0 answered, 1 failure, 2 usage."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from tacho_fleet import compare, load, servers, statements, views
from tacho_fleet.engine import ALL_TABLES
from tacho_fleet.errors import FleetError
from tacho_fleet.landing import SERVERS, Landing
from tacho_fleet.options import (
    add_commit,
    add_dimension,
    add_expire,
    add_redact,
    add_samples,
    add_shared,
    add_statements,
    add_views,
    add_windows,
)
from tacho_fleet.output import (
    json_lines,
    json_text,
    lines_text,
    observed_text,
    table_lines,
    table_text,
)
from tacho_fleet.session import Session
from tacho_fleet.times import SECOND, interval

if TYPE_CHECKING:
    from tacho_fleet.iceberg import Iceberg

TOP_SHOWN = (("key", "key"), ("by_key", "by"), ("avg_aas", "avg_aas"), ("peak_aas", "peak_aas"),
             ("p99_aas", "p99_aas"), ("peak_sessions", "sess"), ("pct", "pct"),
             ("query_text", "query"))  # fmt: skip
TIMELINE_SHOWN = (("bucket_start", "bucket_start"), ("key", "key"), ("avg_aas", "avg_aas"),
                  ("peak_sessions", "sess"), ("backend_seconds", "seconds"),
                  ("servers", "servers"), ("coverage_pct", "coverage"))  # fmt: skip


OBSERVED = " of the period was observed"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Prints a usage error in the form of the other programs."""
        hint = f'Try "{self.prog} --help".'
        _say(FleetError(message, hint=hint))
        sys.exit(2)


class _Version(argparse.Action):
    """Imports the version only on request, because questions do not need it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Prints the version and exits."""
        from importlib.metadata import version  # noqa: PLC0415

        print(f"tacho fleet {version('tacho-fleet')}")
        parser.exit()


def lines(words: Sequence[str] | None = None) -> Iterable[str]:
    """The output of a command: at once, or line by line."""
    options = _parser().parse_args(words)
    told = options.run(options)
    return [told] if isinstance(told, str) else told


def answer(words: Sequence[str]) -> str:
    """The whole output of a command."""
    return "\n".join(lines(words))


def main() -> None:
    """Runs the command of the command line and exits."""
    try:
        for line in lines():
            print(line)
        sys.stdout.flush()
    except FleetError as error:
        _say(error)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        _say(told)
        sys.exit(1)


# Messages for errors of libraries, by the first word of the module.
_FAILED = {
    "sqlalchemy": "could not use the catalog",
    "sqlite3": "could not use the catalog",
    "duckdb": "could not make the answer",
    "_duckdb": "could not make the answer",
    "pyarrow": "could not read or write an object",
    "obstore": "could not reach the object store",
}


def _told(error: Exception) -> FleetError | None:
    """The message for an error that a library or the system has raised."""
    failed = _FAILED.get(type(error).__module__.partition(".")[0])
    if isinstance(error, OSError):
        where = f' "{error.filename}"' if error.filename else ""
        failed = f"could not read or write{where or ' a file'}"
    if failed is None:
        return None
    text = getattr(error, "strerror", None) or (str(error).splitlines() or [repr(error)])[0]
    return FleetError(failed, f"{text.rstrip('.')}.")


def _say(error: FleetError) -> None:
    print("\n".join(error.lines()), file=sys.stderr)


def _notice(text: str) -> None:
    print(f"notice: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tacho fleet",
        description="One question to the history of many PostgreSQL servers, of what tacho ship "
        "has put into a directory or a bucket.",
        epilog="tacho fleet COMMAND --help tells the options of a command. Exit codes: 0 answered, "
        "1 failure, 2 usage.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    aas = commands.add_parser("aas", help="Load of a window")
    add_samples(aas)
    aas.set_defaults(run=_aas, dimension=None, by=None, n=None, order_by="avg")
    top = commands.add_parser("top", help="Largest keys of a dimension")
    add_dimension(top, "wait_event", load.DIMENSIONS)
    top.add_argument("--order-by", choices=load.ORDERS, default="avg", help="what ranks keys")
    add_samples(top, by=True)
    top.set_defaults(run=_top)
    compared = commands.add_parser("compare", help="Two windows: what grew, shrank, is new or gone")
    add_dimension(compared, None, load.DIMENSIONS)
    add_windows(compared)
    add_samples(compared, by=True)
    compared.set_defaults(run=_compare, by=None, order_by="avg")
    timeline = commands.add_parser("timeline", help="Load bucket by bucket")
    add_samples(timeline, by=True)
    timeline.set_defaults(run=_timeline, dimension=None, order_by="avg")
    history = commands.add_parser("statements-history", help="Cost of statements over time")
    add_dimension(history, statements.STATEMENT, statements.DIMENSIONS)
    add_statements(history)
    history.set_defaults(run=_statements_history)
    listed = commands.add_parser("servers", help="Servers and their history")
    add_shared(listed)
    listed.set_defaults(run=_servers)
    commit = commands.add_parser("commit", help="Make tables of Iceberg of what has landed")
    add_commit(commit)
    commit.set_defaults(run=_commit)
    expire = commands.add_parser("expire", help="Remove what is replaced or committed")
    add_expire(expire)
    expire.set_defaults(run=_expire)
    redact = commands.add_parser("redact", help="Remove a server, tenant or text for good")
    add_redact(redact)
    redact.set_defaults(run=_redact)
    made = commands.add_parser("views", help="Views and macros for an engine's own SQL")
    add_views(made)
    made.set_defaults(run=_views)
    sql = commands.add_parser("sql", help="Your own question in DuckDB's SQL")
    sql.add_argument("query", metavar="QUERY", help=f"about tables {', '.join(ALL_TABLES)}")
    add_shared(sql)
    sql.set_defaults(run=_sql)
    return parser


def _aas(options: argparse.Namespace) -> str:
    session = Session(options)
    rows = load.aas(session.engine, session.question())
    return json_text(rows, load.AAS) if options.json else lines_text(rows[0], load.AAS)


def _top(options: argparse.Namespace) -> str:
    session = Session(options)
    rows, whole = load.top(session.engine, session.question())
    if not rows:
        _notice(f"no rows: {_nobody(session) or observed_text(whole) + OBSERVED}")
    if options.json:
        return json_text(rows, load.TOP)
    empty = [name for name in ("by_key", "query_text") if all(row[name] is None for row in rows)]
    shown = [column for column in TOP_SHOWN if column[0] not in empty]
    return session.heading(rows) + table_text(rows, shown, options.wide)


def _compare(options: argparse.Namespace) -> str:
    rows = compare.rows(options)
    if options.json:
        return json_text(rows, compare.COLUMNS)
    notes = {f"{row['note']}\n\n" for row in rows if row["note"]}
    return "".join(notes) + table_text(rows, compare.SHOWN, options.wide)


def _timeline(options: argparse.Namespace) -> str:
    session = Session(options)
    rows = load.timeline(session.engine, session.question())
    if options.json:
        return json_text(rows, load.TIMELINE)
    shown = [column for column in TIMELINE_SHOWN if column[0] != "key" or options.by]
    return "times in UTC\n\n" + table_text(rows, shown, options.wide)


def _nobody(session: Session) -> str | None:
    return None if session.hours else "no server has this name and label"


def _statements_history(options: argparse.Namespace) -> str:
    session = Session(options)
    asked = session.about_statements()
    columns, rows = statements.history(session.engine, asked)
    if not rows:
        recorded = statements.recorded_text(session.engine, asked)
        _notice(f"no rows: {_nobody(session) or recorded + ' of the period was recorded'}")
    if options.json:
        return json_text(rows, columns)
    shown = [column for column in statements.SHOWN if column[0] != "period_start" or options.bucket]
    return session.heading(rows) + table_text(rows, shown, options.wide)


def _servers(options: argparse.Namespace) -> str:
    session = Session(options)
    rows = servers.rows(session)
    if options.json:
        return json_text(rows, servers.COLUMNS)
    return table_text(rows, servers.SHOWN, options.wide)


def _commit(options: argparse.Namespace) -> str:
    # importing it takes seconds of CPU, and questions do not need it
    from tacho_fleet import commit  # noqa: PLC0415

    landing = Landing.open(options.landing)
    landing.expect_shipped()
    done = commit.commit(landing, _tables(options), options.most_hours, options.wait)
    return f"committed hours {done.hours}, rows {done.rows}, batches {done.batches}"


def _tables(options: argparse.Namespace) -> "Iceberg":
    from tacho_fleet import commit, iceberg  # noqa: PLC0415

    warehouse = commit.warehouse_of(options.catalog, options.warehouse)
    return iceberg.Iceberg(options.catalog, warehouse)


def _expect_tables(options: argparse.Namespace) -> None:
    """Commands that remove committed data must name its catalog. In another catalog the landed
    hours would be committed again, and be removed from where they are needed."""
    from tacho_fleet.tables import Tables  # noqa: PLC0415

    if Tables(options.catalog).location(SERVERS) is None:
        raise FleetError(
            "there are no tables in the catalog",
            hint="Name the catalog that was given to tacho fleet commit.",
        )


def _expire(options: argparse.Namespace) -> str:
    from tacho_fleet import maintain  # noqa: PLC0415

    _expect_tables(options)
    landing = Landing.open(options.landing) if options.landing else None
    grace = interval(options.grace) / SECOND
    return str(maintain.expire(_tables(options), landing, grace, options.wait))


def _redact(options: argparse.Namespace) -> str:
    from tacho_fleet import maintain, redaction  # noqa: PLC0415

    _expect_tables(options)
    [what] = [
        redaction.Redaction(kind, str(value))
        for kind in redaction.KINDS
        if (value := getattr(options, kind)) is not None
    ]
    landing = Landing.open(options.landing)
    return str(maintain.redact(_tables(options), landing, what, options.wait))


def _views(options: argparse.Namespace) -> str:
    return views.text(options.for_engine, options.tables)


def _sql(options: argparse.Namespace) -> Iterator[str]:
    columns, blocks = Session(options).sql(options.query)
    if options.json:
        return json_lines((row for block in blocks for row in block), columns)
    return table_lines(blocks, [(name, name) for name in columns], options.wide)
