"""A catalog in PostgreSQL: a server of this machine, made for the tests."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from lake import REPOSITORY, Lake

from tacho_fleet import cli
from tacho_fleet.tables import Tables

QUESTIONS = (("aas",), ("top", "database"), ("top", "server", "--minutes"), ("servers",))
WINDOW = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T13:00:00Z")
AS_SERVER = str(REPOSITORY / "tools/as-server.sh")


@pytest.fixture(scope="module")
def catalog() -> Iterator[str]:
    """The address of an empty database."""
    with TemporaryDirectory(dir="/tmp", prefix="tacho-catalog-") as place:
        data = f"{place}/data"
        if os.geteuid() == 0:
            user = subprocess.check_output([AS_SERVER, "--user"], text=True).strip()
            shutil.chown(place, user)
        run("initdb", "-D", data, "-A", "trust", "-N", "-U", "postgres")
        settings = f"-c listen_addresses= -c unix_socket_directories={place} -c fsync=off"
        run("pg_ctl", "-D", data, "-l", f"{place}/log", "-o", settings, "-w", "start")
        try:
            yield f"postgresql://postgres@/postgres?host={place}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def run(program: str, *words: str) -> None:
    """Runs a program of PostgreSQL as a user that it accepts."""
    config = os.environ.get("PG_CONFIG", "pg_config")
    where = subprocess.check_output([config, "--bindir"], text=True).strip()
    command = [AS_SERVER, f"{where}/{program}", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_commit_expire_and_redact(
    fleet_of_three: tuple[Lake, dict[str, Path]], catalog: str, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    shutil.copytree(fleet_of_three[0].root, lake.root)
    where = ("--catalog", catalog, "--warehouse", str(tmp_path / "warehouse"))
    told = cli.answer(["commit", str(lake.root), *where, "--most-hours", "3"])
    assert told.startswith("committed hours 7, ") and told.endswith(" batches 3")
    tables = Lake(catalog)  # type: ignore[arg-type]
    answers = [tables.ask(*question, *WINDOW) for question in QUESTIONS]
    assert answers == [lake.ask(*question, *WINDOW) for question in QUESTIONS]
    assert Tables(catalog).is_whole("load_minute")

    told = cli.answer(["expire", str(lake.root), *where, "--grace", "0s"])
    assert told.startswith("removed rows 0, snapshots 8, files ")
    assert [tables.ask(*question, *WINDOW) for question in QUESTIONS] == answers
    assert not list(lake.root.glob("sample_runs/**/*.parquet"))

    assert {row["key"] for row in answers[1]} == {"db0", "db1"}
    cli.answer(["redact", str(lake.root), *where, "--database", "db1"])
    after = tables.ask("top", "database", *WINDOW)
    assert (
        after[0]["backend_seconds"] == {r["key"]: r for r in answers[1]}["db0"]["backend_seconds"]
    )
    assert [row["key"] for row in after] == ["db0"]
