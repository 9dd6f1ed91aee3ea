"""Tapes and lakes made with the project's own programs."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacho_fleet import cli
from tacho_fleet.iceberg import Iceberg

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("TACHO_PROGRAM", REPOSITORY / "target/release/tacho"))
CONFORMANCE = REPOSITORY / "conformance"

Answer = list[dict[str, object]]


def tacho(*words: object, stdin: str | None = None) -> str:
    """The output of the program."""
    command = [str(PROGRAM), *map(str, words)]
    env = os.environ | {"TZ": "UTC"}
    run = subprocess.run(command, input=stdin, capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return run.stdout


def answer(*words: object) -> Answer:
    """The answer of a reader, with numbers as text."""
    return json.loads(tacho(*words, "--json"), parse_float=str, parse_int=str)


@dataclass
class Lake:
    """A directory that tapes are shipped to."""

    root: Path

    def ship(self, tape: Path, server: str, *words: object) -> None:
        """Ships all complete hours."""
        to = f"file://{self.root}"
        tacho("ship", "--tape", tape, "--server", server, "--to", to, *words)

    def ask(self, *words: object) -> Answer:
        """The answer of `tacho fleet`, with numbers as text."""
        text = cli.answer([*map(str, words), "--json", "--lake", str(self.root)])
        return json.loads(text, parse_float=str, parse_int=str)

    def fleet(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Runs `tacho fleet` as people do."""
        return fleet(*words, "--lake", self.root)


def fleet(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `tacho fleet` as people do."""
    command = ["tacho-fleet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sessions(tape: Path, csv: str, node: str | None = None) -> None:
    """Records samples, with a given or random node number."""
    words = ("--node", node) if node else ()
    tacho("import", "sessions", "-", "--tape", tape, *words, stdin=csv)


def case_files() -> list[dict]:
    """The files of cases of `conformance/`, each with the name of the server that has its input."""
    paths = sorted((CONFORMANCE / "cases").glob("*.json"))
    files = (json.loads(path.read_text(), parse_float=str, parse_int=str) for path in paths)
    return [file | {"server": path.stem} for path, file in zip(paths, files, strict=True)]


def dimensions() -> tuple[list[str], list[str]]:
    """The dimensions of the catalog: columns of samples, and those that readers derive."""
    lines = {
        "samples.h": r"^COLUMN\(\w+, \d+, (\w+), \w+, \w+, DIM,",
        "derived.h": r"^DERIVED\((\w+),",
    }
    columns, derived = (
        re.findall(line, (REPOSITORY / "catalog" / file).read_text(), re.MULTILINE)
        for file, line in lines.items()
    )
    return columns, derived


def _run(step: int, words: tuple[str, ...]) -> None:
    os.environ["TACHO_FLEET_FAULT"] = str(step)
    cli.answer(words)


def killed(step: int, *words: str) -> bool:
    """Runs a command in a process of its own, which is killed at step `step` if it gets there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tacho_fleet.maintain", "tacho_fleet.cli"])
    process = context.Process(target=_run, args=(step, words))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@contextmanager
def stopped(step: int, *words: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """Runs a command that is stopped at a step and continued after the block. Its end is known
    then."""
    fault = {"TACHO_FLEET_FAULT": str(step), "TACHO_FLEET_FAULT_SIGNAL": "STOP"}
    command = ["tacho-fleet", *words]
    done = subprocess.CompletedProcess[str](command, 0)
    with subprocess.Popen(
        command, env=os.environ | fault, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        _, status = os.waitpid(running.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"there is no step {step}"
        try:
            yield done
        finally:
            running.send_signal(signal.SIGCONT)
        done.stdout, done.stderr = running.communicate()
        done.returncode = running.returncode


def end_lease(catalog: str) -> None:
    """Ends the lease of a killed committer."""
    with Iceberg(catalog).catalog.engine.begin() as connection:
        connection.exec_driver_sql("update tacho_fleet_lease set ends_at = 0")
