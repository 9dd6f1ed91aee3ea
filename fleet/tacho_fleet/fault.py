"""Where tests kill a committer: `TACHO_FLEET_FAULT=N` ends the process at the N-th step."""

import os
import signal

_passed = 0


def step() -> None:
    """A step at which a process may be killed."""
    global _passed  # noqa: PLW0603
    _passed += 1
    if os.environ.get("TACHO_FLEET_FAULT") == str(_passed):
        os.kill(os.getpid(), signal.SIGKILL)
