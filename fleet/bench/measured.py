"""Measures a command with all processes that it leaves behind, such as Spark's JVM."""

import ctypes
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# Begin of the data that made.py makes.
DAY = datetime(2026, 3, 1, tzinfo=UTC)

# prctl(2): processes that lose their parent become children of this process. So it can wait
# for them and gets their resource usage.
_SUBREAPER = 36


@dataclass
class Used:
    """Wall and CPU time in s; memory in MB, the sum of the peaks of all processes."""

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        """As cells."""
        return f"{self.wall:.2f} | {self.cpu:.2f} | {self.memory:,.0f}"


def run(command: Sequence[str], output: Path = Path(os.devnull)) -> Used:
    """Runs a command and waits for all processes that it started. This process must not have other
    children."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    started = time.monotonic()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [(os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600)]
    first = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    used = Used(0, 0, 0)
    for pid, status, usage in iter(_ended, None):
        used.cpu += usage.ru_utime + usage.ru_stime
        used.memory += usage.ru_maxrss / 1024
        if pid == first:
            used.wall = time.monotonic() - started
            if status:
                sys.exit(f"error: {' '.join(command)} failed")
    return used


def _ended() -> "tuple[int, int, object] | None":
    try:
        return os.wait4(-1, 0)
    except ChildProcessError:
        return None


def apart(what: Callable[..., None], *told: object) -> None:
    """Runs `what` in a process of its own, which does its imports. Commands that are measured
    later begin with the memory of this process, as the kernel counts it, so it must stay small."""
    process = multiprocessing.get_context("fork").Process(target=what, args=told)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"error: {what.__name__} failed")
