"""The questions of a fleet as SQL, a directory for each engine."""

from pathlib import Path


def script(engine: str, name: str) -> str:
    """One of the files."""
    return (Path(__file__).parent / engine / f"{name}.sql").read_text(encoding="utf-8")
