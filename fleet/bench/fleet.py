"""usage: python fleet.py PLACE ENGINE...

Cost of committing and asking. Prints tables of Markdown. CPU and memory of processes come from
the kernel when they end. Fails if two engines answer differently."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path

from measured import DAY, apart, run

# (servers, hours) to commit; then (servers, hours) to ask about
COMMITTED = ((10, 24), (100, 24))
ASKED = ((10, 24), (100, 24), (1000, 24), (100, 72), (100, 168))
QUESTIONS = (("top", "wait_event", "--minutes"), ("top", "server", "--minutes"),
             ("statements-history", "query_id"))  # fmt: skip


def files(place: Path) -> str:
    """Number of Parquet files and MB."""
    sizes = [path.stat().st_size for path in place.rglob("*.parquet")]
    return f"{len(sizes):,} | {sum(sizes) / 1e6:.2f}"


def _landed(*told: object) -> None:
    import made  # noqa: PLC0415

    made.landed(*told)


def _tables(catalog: str, warehouse: str, *told: object) -> None:
    import made  # noqa: PLC0415

    from tacho_fleet.iceberg import Iceberg  # noqa: PLC0415

    made.tables(Iceberg(catalog, warehouse), *told)


def commit(root: Path, servers: int, hours: int) -> None:
    """Prints a row: landed objects, tables made of them, and the cost of that."""
    apart(_landed, root / "landing", servers, hours)
    catalog = f"sqlite:///{root}/catalog.db"
    took = run(["tacho-fleet", "commit", str(root / "landing"), "--catalog", catalog])
    sizes = f"{files(root / 'landing')} | {files(root / 'warehouse')}"
    print(f"| {servers:,} x {hours} h | {sizes} | {took} |", flush=True)


def ask(root: Path, engines: list[str], servers: int, hours: int) -> None:
    """A row for each question and engine."""
    catalog = f"sqlite:///{root}/catalog.db"
    apart(_tables, catalog, f"file://{root}/warehouse", servers, hours)
    window = ("--since", DAY.isoformat(), "--until", (DAY + timedelta(hours=hours)).isoformat())
    for words in QUESTIONS:
        answers = set()
        for engine in engines:
            output = root / f"{words[1]}-{engine}.json"
            command = ["tacho-fleet", *words, *window, "--json", "--lake", catalog]
            took = run([*command, "--engine", engine], output)
            answers.add(output.read_text())
            size = f"{servers:,} x {hours} h"
            print(f"| {size} | `{' '.join(words)}` | {engine} | {took} |", flush=True)
        if len(answers) > 1:
            sys.exit(f"error: engines differ, see {root}/{words[1]}-*.json")


def main(place: Path, engines: list[str]) -> None:
    """Measures each fleet in turn."""
    print("| Landed | files | MB | tables: files | MB | s | CPU s | MB of memory |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for number, fleet in enumerate(COMMITTED):
        commit(place / f"committed{number}", *fleet)
    print("\n| Asked | Question | Engine | s | CPU s | MB of memory |\n|---|---|---|--:|--:|--:|")
    for number, fleet in enumerate(ASKED):
        root = place / f"asked{number}"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        ask(root, engines, *fleet)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:] or ["duckdb"])
