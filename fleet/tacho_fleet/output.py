"""Answers in the forms for programs and for people."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from tacho_fleet.engine import Row
from tacho_fleet.plain import plain_json, plain_text
from tacho_fleet.times import DAY, HOUR, MINUTE, SECOND, moment, rfc3339

SCREEN, LEAST = 80, 8
# 64 bits: many JSON readers keep only 53
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
    """One array of objects; numbers keep their decimal places."""
    return "\n".join(json_lines(rows, columns))


def json_lines(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """The same line by line."""
    last = None
    for row in rows:
        yield f"{last}," if last else "["
        cells = (f"{json.dumps(name)}: {_json(name, row[name])}" for name in columns)
        last = plain_json(f"{{{', '.join(cells)}}}")
    yield from (last, "]") if last else ("[]",)


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
    return "\n".join(table_lines([rows], columns, wide))


def table_lines(
    blocks: Iterable[Sequence[Row]], columns: Sequence[tuple[str, str]], wide: bool
) -> Iterator[str]:
    """The same line by line. Columns have the width that the first block of rows needs, and get
    wider if a later block needs more."""
    is_text = [False] * len(columns)
    lines = [[plain_text(title) for _, title in columns]]
    needed = [len(title) for title in lines[0]]
    are_rows = False
    for block in blocks:
        are_rows = are_rows or bool(block)
        lines += [[_cell(name, row[name]) for name, _ in columns] for row in block]
        for at, (name, _) in enumerate(columns):
            is_text[at] = is_text[at] or _is_text(name, block)
            needed[at] = max([needed[at], *(len(line[at]) for line in lines)])
        yield from _laid(lines, needed, is_text, wide)
        lines = []
    if not are_rows:
        yield from [*_laid(lines, needed, is_text, wide), "(no rows)"]


def _laid(
    lines: Iterable[list[str]], needed: Sequence[int], is_text: Sequence[bool], wide: bool
) -> Iterator[str]:
    """Lines of cells, texts cut to the screen unless it is wide."""
    widths = list(needed)
    if not wide:
        _cut(widths, is_text)
    for line in lines:
        laid = [
            _fit(cell, width).ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, is_text, strict=True)
        ]
        yield "  ".join(laid).rstrip()


def lines_text(row: Row, columns: Sequence[str]) -> str:
    """Each column on a line of its own."""
    width = max(len(name) for name in columns)
    lines = (f"{name:{width}}  {_cell(name, row[name])}".rstrip() for name in columns)
    return "\n".join(lines)


def observed_text(whole: Row) -> str:
    """The observed part of a window, for an answer without rows."""
    return f"{whole['coverage_pct']} %" if whole["ticks_observed"] else "nothing"


def screen() -> int:
    """The width of the screen in columns."""
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


def _cut(widths: list[int], is_text: Sequence[bool]) -> None:
    """Cuts the widest texts until the line fits."""
    texts = [at for at, text in enumerate(is_text) if text]
    while texts and sum(widths) + 2 * (len(widths) - 1) > screen():
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
