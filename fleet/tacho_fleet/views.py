"""The questions of a fleet as views and macros of an engine, for users who query the tables in its
own SQL: `tacho fleet views`. All engines share one text, engines/every/views.sql."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tacho_fleet_engines import script

# Forms of a view, and of a question about a window. Trino has no macros, so there a question is a
# prepared statement.
_PART = re.compile(r"-- (view|question) (\w+): ((?:.*\n-- )*.*)\n((?:.+\n)+)")
_WINDOW = re.compile(r"\b(since|until)\b")
_CALL = re.compile(r"\b(micros|hour_before)\(([^()]*)\)")


@dataclass(frozen=True)
class Dialect:
    """The differences between engines."""

    view: str
    question: str
    micros: str
    hour_before: str
    window: str = "{}"
    ask: str = "select * from {name}(timestamp '{since}', timestamp '{until}')"

    def written(self, body: str) -> str:
        """A query in the form of the engine."""
        calls = {"micros": self.micros, "hour_before": self.hour_before}
        body = _CALL.sub(lambda found: calls[found[1]].format(found[2]), body)
        return _WINDOW.sub(lambda found: self.window.format(found[1]), body)

    def asked(self, name: str, body: str) -> str:
        """The call of a question about one hour."""
        times = {"since": "2026-11-21 03:00:00", "until": "2026-11-21 04:00:00"}
        using = (f"timestamp '{times[word]} UTC'" for word in _WINDOW.findall(body))
        return self.ask.format(name=name, using=", ".join(using), **times)


DIALECTS = {
    "clickhouse": Dialect(
        view="create or replace view {name} as",
        question="create or replace view {name} as",
        micros="toUnixTimestamp64Micro(toDateTime64({}, 6, 'UTC'))",
        hour_before="{} - interval 1 hour",
        window="{{{}:DateTime64(6, 'UTC')}}",
        ask="select * from {name}(since = '{since}', until = '{until}')",
    ),
    "duckdb": Dialect(
        view="create or replace view {name} as",
        question="create or replace macro {name}(since, until) as table",
        micros="epoch_us({})",
        hour_before="{} - interval 1 hour",
        ask="from {name}(timestamptz '{since} UTC', timestamptz '{until} UTC')",
    ),
    "spark": Dialect(
        view="create or replace temporary view {name} as",
        question="create or replace temporary function {name}(since timestamp, until timestamp)\n"
        "returns table return",
        micros="unix_micros({})",
        hour_before="{} - interval 1 hour",
    ),
    "trino": Dialect(
        view="create or replace view {name} as",
        question="prepare {name} from",
        micros="cast(round(to_unixtime({}) * 1e6) as bigint)",
        hour_before="{} - interval '1' hour",
        window="cast(? as timestamp(6) with time zone)",
        ask="execute {name} using {using}",
    ),
}


def statements(engine: str, tables: str) -> Iterator[tuple[str, str]]:
    """The comment of each view and question, and the statement that makes it."""
    dialect = DIALECTS[engine]
    for kind, name, told, query in _PART.findall(script("every", "views")):
        body = query.rstrip().replace("tables.", f"{tables}." if tables else "")
        made = dialect.view if kind == "view" else dialect.question
        asked = f"\n-- {dialect.asked(name, body)}" if kind == "question" else ""
        yield f"-- {told}{asked}", f"{made.format(name=name)}\n{dialect.written(body)}"


def text(engine: str, tables: str) -> str:
    """All statements as one text, to be pasted."""
    return "\n\n".join(f"{told}\n{made};" for told, made in statements(engine, tables))
