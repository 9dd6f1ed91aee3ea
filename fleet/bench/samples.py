"""usage: python samples.py PLACE ENGINE...

Fifty servers' tapes of a day, shipped by tacho ship, committed, and asked: an hour of it by each
engine, all of it by the first. Prints tables of Markdown. Fails when a tick or a sample of a tape
is missing in the tables or there twice, or when two engines answer differently. Needs 10 GB of
memory and 2 GB in PLACE.

Environment
  TACHO_PROGRAMS   where tacho, tacho-ship and examples/dataset are (default target/release)
  HOURS            length of the tapes, 14 or more (default 24)

Tapes that are in PLACE already are used again."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measured import Used, apart, run

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("TACHO_PROGRAMS", REPOSITORY / "target/release"))
HOURS = int(os.environ.get("HOURS", "24"))
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
WINDOW = ("--since", BEGIN.isoformat(), "--until", (BEGIN + timedelta(hours=HOURS)).isoformat())
# The busiest hour of the day.
NOON = tuple(f"2026-03-02T{hour}:00:00Z" for hour in ("13", "14"))
ASKED = {"an hour": ("--since", NOON[0], "--until", NOON[1]), "all": WINDOW}
# Kinds of days, and the number of servers with each. Each server has a seed of its own: query
# ids, sessions and events differ, but names of databases and users and the course of the day
# do not.
FLEET = {
    "skewed --ages": 36,
    "skewed": 6,
    "uniform --ages": 3,
    "uniform": 3,
    "churn": 2,
}  # fmt: skip
QUESTIONS = (("top", "wait_event"), ("timeline", "--by", "query_id"))


def servers(kind: str) -> list[str]:
    """Names of the servers of a kind."""
    return [f"{kind.replace(' --', '-')}-{number:02}" for number in range(FLEET[kind])]


ALL = {server: kind for kind in FLEET for server in servers(kind)}


def make(place: Path, server: str, seed: int) -> None:
    """Records a server's tape, unless it exists; it gets its name when it is complete."""
    tape, unfinished = place / "tapes" / server, place / "unfinished" / server
    if tape.is_dir():
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(exist_ok=True)
    words = [*ALL[server].split(), "--hours", str(HOURS), "--seed", str(seed)]
    told = [PROGRAMS / "tacho", "import", "sessions", "-", "--tape", unfinished]
    with subprocess.Popen([PROGRAMS / "examples/dataset", *words], stdout=subprocess.PIPE) as made:
        recorded = subprocess.run(
            told, check=False, stdin=made.stdout, stderr=subprocess.PIPE, text=True
        )
    if recorded.returncode or made.returncode:
        sys.exit(f"error: could not make the tape of {server}: {recorded.stderr}")
    tape.parent.mkdir(exist_ok=True)
    unfinished.rename(tape)


def size(place: Path, pattern: str) -> int:
    """Bytes of files below a directory."""
    return sum(path.stat().st_size for path in place.glob(pattern))


def ship(place: Path) -> None:
    """Ships all tapes, and prints the cost of one of each kind, and of all."""
    print("| Shipped | s | CPU s | MB of memory |\n|---|--:|--:|--:|")
    whole = Used(0, 0, 0)
    for server, kind in ALL.items():
        tape, to = place / "tapes" / server, f"file://{place}/landing"
        command = [str(PROGRAMS / "tacho-ship"), "--tape", str(tape), "--server", server]
        used = run([*command, "--to", to])
        whole = Used(whole.wall + used.wall, whole.cpu + used.cpu, max(whole.memory, used.memory))
        if server.endswith("-00"):
            print(f"| `{kind}`, 1 server | {used} |", flush=True)
    print(f"| {len(ALL)} servers, one after the other | {whole} |", flush=True)


def commit(place: Path) -> None:
    """Commits, and prints the cost."""
    command = ["tacho-fleet", "commit", str(place / "landing"), "--catalog", catalog(place)]
    print("\n| Committed | s | CPU s | MB of memory |\n|---|--:|--:|--:|")
    print(f"| {len(ALL)} servers | {run(command)} |", flush=True)


def catalog(place: Path) -> str:
    """The address of the catalog."""
    return f"sqlite:///{place}/catalog.db"


def by_kind(warehouse: Path) -> dict[str, float]:
    """Bytes of committed sample_runs; bytes of a row group of several kinds are divided by
    rows."""
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    found: dict[str, float] = dict.fromkeys(FLEET, 0)
    for path in warehouse.glob("**/sample_runs/data/**/*.parquet"):
        file, spent = pq.ParquetFile(path), 0
        share: dict[str, float] = dict.fromkeys(FLEET, 0)
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            columns = (group.column(column) for column in range(group.num_columns))
            bytes_of_group = sum(column.total_compressed_size for column in columns)
            spent += bytes_of_group
            names = file.read_row_group(number, ["server"])["server"]
            for count in pc.value_counts(names).to_pylist():
                kind = ALL[count["values"]]
                share[kind] += bytes_of_group * count["counts"] / group.num_rows
        for kind, part in share.items():
            found[kind] += part / spent * path.stat().st_size
    return found


def sizes(place: Path) -> None:
    """Prints bytes of tapes, and of sample_runs as landed and as committed."""
    committed = by_kind(place / "warehouse")
    print("\n| Kind | servers | tapes, MB | landed, MB | to tape | committed, MB | to tape |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    total = [0.0, 0.0, 0.0]
    for kind, number in FLEET.items():
        tape = sum(size(place / "tapes" / server, "**/*.tape") for server in servers(kind))
        runs = place / "landing/sample_runs"
        landed = sum(size(runs / f"server={server}", "**/*.parquet") for server in servers(kind))
        told = [tape, landed, committed[kind]]
        total = [a + b for a, b in zip(total, told, strict=True)]
        print(f"| `{kind}` | {number} | {_ratios(*told)} |")
    print(f"| all | {len(ALL)} | {_ratios(*total)} |")
    for what in ("landing", "warehouse"):
        files = list((place / what).rglob("*.parquet"))
        told = sum(path.stat().st_size for path in files)
        print(f"\n{what}, all tables: {len(files):,} files, {told / 1e6:.1f} MB", flush=True)


def _ratios(tape: float, landed: float, committed: float) -> str:
    cells = f"{tape / 1e6:.1f} | {landed / 1e6:.1f} | {landed / tape:.2f}"
    return f"{cells} | {committed / 1e6:.1f} | {committed / tape:.2f}"


def of_tape(place: Path, server: str) -> tuple[int, int]:
    """Ticks of a tape, and seconds of all its sessions."""
    command = [PROGRAMS / "tacho", "aas", "--scope", "all", *WINDOW, "--json"]
    found = subprocess.run(
        [*command, "--tape", place / "tapes" / server], check=True, capture_output=True
    )
    [row] = json.loads(found.stdout)
    return row["ticks_observed"], round(row["backend_seconds"])


def check(place: Path) -> None:
    """Compares each server's ticks and samples with its tape."""
    tables = (
        "(select server, sum(ticks) as samples, sum(weight_ms) as ms from sample_runs group by 1)"
        " join (select server, count(*) as ticks, sum(weight_ms) as all_ms from ticks group by 1)"
        " using (server)"
    )
    query = f"select server, ticks, all_ms, samples, ms from {tables}"
    command = ["tacho-fleet", "sql", query, *WINDOW, "--json", "--lake", catalog(place)]
    found = subprocess.run(command, check=True, capture_output=True)
    rows = {row["server"]: row for row in json.loads(found.stdout)}
    if set(rows) != set(ALL):
        sys.exit("error: servers differ")
    ticks, samples = 0, 0
    for server in ALL:
        of_server, seconds = of_tape(place, server)
        wanted = (of_server, of_server * 1000, seconds, seconds * 1000)
        row = rows[server]
        told = tuple(int(row[name]) for name in ("ticks", "all_ms", "samples", "ms"))
        if told != wanted:
            sys.exit(f"error: {server} has ticks, ms, samples, ms {told}, its tape {wanted}")
        ticks, samples = ticks + of_server, samples + seconds
    print(f"\nSame in tapes and tables, server by server: {ticks:,} ticks, {samples:,} samples")


def ask(place: Path, engines: list[str], window: str) -> None:
    """Prints the cost of questions; all engines must give equal answers."""
    for words in QUESTIONS:
        answers = set()
        for engine in engines:
            output = place / f"{words[0]}-{engine}.json"
            command = ["tacho-fleet", *words, *ASKED[window], "--json", "--lake", catalog(place)]
            command += ["--memory-limit-mb", "4096", "--engine", engine]
            used = run(command, output)
            answers.add(output.read_text())
            print(f"| {window} | `{' '.join(words)}` | {engine} | {used} |", flush=True)
        if len(answers) > 1:
            sys.exit(f"error: engines differ, see {place}/{words[0]}-*.json")


def main(place: Path, engines: list[str]) -> None:
    """Runs one step after the other; landing directory and warehouse are made again."""
    place.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda told: make(place, told[1], told[0]), enumerate(ALL, 1)))
    for name in ("landing", "warehouse"):
        shutil.rmtree(place / name, ignore_errors=True)
    (place / "catalog.db").unlink(missing_ok=True)
    ship(place)
    commit(place)
    apart(sizes, place)
    check(place)
    print("\n| Of | Question | Engine | s | CPU s | MB of memory |\n|---|---|---|--:|--:|--:|")
    ask(place, engines, "an hour")
    ask(place, engines[:1], "all")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:] or ["duckdb"])
