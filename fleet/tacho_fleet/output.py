"""Answers for programs and for people."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal

from tacho_fleet.engine import Row
from tacho_fleet.plain import plain_json, plain_text
from tacho_fleet.times import DAY, HOUR, MINUTE, SECOND, moment, rfc3339

SCREEN, LEAST = 80, 8
# 64 bits: many readers of JSON keep 53
_IDS = ("query_id", "plan_id")
_TIMES = (
    "period_start",
    "period_end",
    "period_start_1",
    "period_end_1",
    "period_start_2",
    "period_end_2",
    "bucket_start",
    "first_hour",
    "last_hour",
)


def interval_text(us: int) -> str:
    """`00:01:00`, `1 day 02:00:00`."""
    days, rest = divmod(us, DAY)
    clock = f"{rest // HOUR:02}:{rest % HOUR // MINUTE:02}:{rest % MINUTE // SECOND:02}"
    if rest % SECOND:
        clock += f".{rest % SECOND:06}".rstrip("0")
    day = f"{days} day{'s' if days > 1 else ''}"
    return clock if not days else f"{day} {clock}" if rest else day


def json_text(rows: Iterable[Row], columns: Sequence[str]) -> str:
    """One array of objects, numbers with the places that they have."""
    lines = []
    for row in rows:
        cells = (f"{json.dumps(name)}: {_json(name, row[name])}" for name in columns)
        lines.append(plain_json(f"{{{', '.join(cells)}}}"))
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"


def _json(name: str, value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if name in _TIMES and isinstance(value, int):
        value = rfc3339(value)
    if name in _IDS and isinstance(value, int):
        value = str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def table_text(rows: Sequence[Row], columns: Sequence[tuple[str, str]], wide: bool) -> str:
    """Columns with their titles; texts are cut to the screen."""
    titles = [plain_text(title) for _, title in columns]
    cells = [[_cell(name, row[name]) for name, _ in columns] for row in rows]
    is_text = [_is_text(name, rows) for name, _ in columns]
    widths = [max(len(line[at]) for line in [titles, *cells]) for at in range(len(columns))]
    if not wide:
        _cut(widths, is_text)
    lines: list[str] = []
    for line in [titles, *cells]:
        laid = [
            _fit(cell, width).ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, is_text, strict=True)
        ]
        lines.append("  ".join(laid).rstrip())
    lines += [] if rows else ["(no rows)"]
    return "\n".join(lines)


def lines_text(row: Row, columns: Sequence[str]) -> str:
    """Every column on a line of its own."""
    width = max(len(name) for name in columns)
    lines = (f"{name:{width}}  {_cell(name, row[name])}".rstrip() for name in columns)
    return "\n".join(lines)


def observed_text(whole: Row) -> str:
    """How much of a window somebody looked, for an answer without rows."""
    return f"{whole['coverage_pct']} %" if whole["ticks_observed"] else "nothing"


def screen() -> int:
    """Columns of the screen."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or SCREEN
    except (OSError, ValueError):
        return SCREEN


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if name in _TIMES and isinstance(value, int):
        return f"{moment(value):%Y-%m-%d %H:%M:%S}"
    return plain_text(f"{value:f}" if isinstance(value, Decimal) else str(value))


def _is_text(name: str, rows: Sequence[Row]) -> bool:
    return name in _TIMES or any(isinstance(row[name], str) for row in rows)


def _cut(widths: list[int], is_text: list[bool]) -> None:
    """Takes what is too much from the widest texts."""
    texts = [at for at, text in enumerate(is_text) if text]
    while texts and sum(widths) + 2 * (len(widths) - 1) > screen():
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
