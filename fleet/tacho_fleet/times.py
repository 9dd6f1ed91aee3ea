"""Parses and prints times and intervals, in µs since 1970 UTC. Servers of a fleet are in many time
zones, so all times are UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tacho_fleet.errors import FleetError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_UNITS = {
    unit: us
    for units, us in (
        ("us microseconds", 1),
        ("ms milliseconds", 1_000),
        ("s sec second seconds", SECOND),
        ("m min mins minute minutes", MINUTE),
        ("h hour hours", HOUR),
        ("d day days", DAY),
        ("w week weeks", 7 * DAY),
    )
    for unit in units.split()
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """A half-open window, in µs."""

    since: int
    until: int

    @property
    def length(self) -> int:
        """The length, in µs."""
        return self.until - self.since


def micros(time: datetime) -> int:
    """A time as µs since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time that is `us` µs after 1970."""
    return _EPOCH + timedelta(microseconds=us)


def rfc3339(us: int) -> str:
    """`2026-11-21T03:12:00Z`, with a fraction when there is one."""
    time = moment(us)
    fraction = f".{time.microsecond:06}".rstrip("0") if time.microsecond else ""
    return f"{time:%FT%T}{fraction}Z"


def interval(text: str) -> int:
    """`10s`, `5m`, `1h 30m`, `2d`."""
    words = re.findall(r"(\d+)\s*([a-z]+)", text)
    if not words or re.sub(r"(\d+)\s*([a-z]+)", "", text).strip():
        raise _not_understood("interval", text, "Write it as 10s, 5m or 1d.")
    try:
        return sum(int(number) * _UNITS[unit] for number, unit in words)
    except KeyError:
        raise _not_understood("interval", text, "Write it as 10s, 5m or 1d.") from None


def time(text: str, end: int) -> int:
    """Parses a time, or an interval before `end`."""
    hint = 'Write it as 1h, now, 03:12, "yesterday 14:00" or 2026-11-21T03:12:00Z.'
    if re.fullmatch(r"(\d+\s*[a-z]+\s*)+", text):
        return end - interval(text)
    if text == "now":
        return micros(datetime.now(UTC))
    day = moment(end).date()
    words = text.split()
    if words[:1] in (["today"], ["yesterday"]):
        day -= timedelta(days=int(words[0] == "yesterday"))
        words = words[1:] or ["00:00"]
    if len(words) == 1 and re.fullmatch(r"\d\d:\d\d(:\d\d)?", words[0]):
        text = f"{day.isoformat()}T{words[0]}"
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise _not_understood("time", text, hint) from None
    return micros(found if found.tzinfo else found.replace(tzinfo=UTC))


def window(since: str | None, until: str | None, end: int) -> Window:
    """The window of a question to a lake whose newest hour ends at `end`."""
    last = end if until is None else time(until, end)
    first = last - HOUR if since is None else time(since, end)
    if first > last:
        raise FleetError(
            "since must not be after until",
            f"The window starts {(first - last) // SECOND} s after its end.",
            "Swap the two, or omit until to use the end of the newest hour.",
        )
    return Window(first, last)


def _not_understood(what: str, text: str, hint: str) -> FleetError:
    return FleetError(f'invalid {what} "{text}"', hint=hint)
