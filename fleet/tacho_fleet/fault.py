"""Steps at which tests kill or stop a committer: with `TACHO_FLEET_FAULT=N` the process gets KILL,
or the signal that `TACHO_FLEET_FAULT_SIGNAL` names, at its N-th step."""

import os
import signal

_passed = 0


def step() -> None:
    """A step at which a process may be killed or stopped."""
    global _passed  # noqa: PLW0603
    _passed += 1
    if os.environ.get("TACHO_FLEET_FAULT") == str(_passed):
        name = os.environ.get("TACHO_FLEET_FAULT_SIGNAL", "KILL")
        os.kill(os.getpid(), signal.Signals[f"SIG{name}"])
