"""The cases of `conformance/` that a lake can answer, asked of what was shipped."""

import json
from pathlib import Path

import pytest
from lake import CONFORMANCE, Lake, tacho

from tacho_fleet.load import DIMENSIONS

FUNCTIONS = ("aas", "top", "timeline")
# What a fleet does not have, each with the reason.
LEFT_OUT = {
    "tz": "times of a fleet are UTC",
    "node": "a server is one, whatever nodes it has had",
}
# Ship keeps one text of a query id.
CASES_LEFT_OUT = (
    "a query id in two databases shows the text of the database asked for",
    "split by database each part shows its text",
)


def _files() -> list[dict]:
    paths = sorted((CONFORMANCE / "cases").glob("*.json"))
    return [json.loads(path.read_text(), parse_float=str, parse_int=str) for path in paths]


def _is_answered(case: dict) -> bool:
    arguments = case["arguments"]
    named = {arguments.get("dimension"), arguments.get("by"), *arguments} - {None}
    return (
        case["function"] in FUNCTIONS
        and "rows" in case
        and case["name"] not in CASES_LEFT_OUT
        and case.get("zone", "UTC") == "UTC"
        and not named & {*LEFT_OUT, "root_blocker"}
    )


CASES = [
    pytest.param(file["input"], case, id=f"{file['input'][:-4]}: {case['name']}")
    for file in _files()
    for case in file["cases"]
    if _is_answered(case)
]


@pytest.fixture(scope="session")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lake]:
    """By input: one server that has recorded it."""
    made = {}
    for file in _files():
        place = tmp_path_factory.mktemp(file["input"])
        source = CONFORMANCE / "inputs" / file["input"]
        extra = [
            f"--with={k}={CONFORMANCE / 'inputs' / v}" for k, v in file.get("with", {}).items()
        ]
        tacho(
            "import", "sessions", source, "--tape", place / "tape", "--node", file["node"], *extra
        )
        made[file["input"]] = lake = Lake(place / "lake")
        lake.root.mkdir()
        lake.ship(place / "tape", Path(file["input"]).stem)
    return made


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_fleet_of_one_server_answers_as_its_tape(
    name: str, case: dict, lakes: dict[str, Lake]
) -> None:
    arguments = dict(case["arguments"])
    words = [case["function"]]
    words += [arguments.pop("dimension")] if "dimension" in arguments else []
    for key, value in arguments.items():
        option = f"--{key.replace('_', '-')}"
        if key == "by_leader":
            words += [option] if value else []
        else:
            words.append(f"{option}={'all' if value is None else value}")
    got = lakes[name].ask(*words)
    assert len(got) == len(case["rows"])
    for row, want in zip(got, case["rows"], strict=True):
        assert {column: row[column] for column in want} == want


def test_most_cases_are_asked() -> None:
    of_functions = [c for f in _files() for c in f["cases"] if c["function"] in FUNCTIONS]
    assert len(CASES) >= 100, f"{len(CASES)} of {len(of_functions)}"
    assert {case.values[1]["function"] for case in CASES} == set(FUNCTIONS)
    dimensions = {case.values[1]["arguments"].get("dimension") for case in CASES}
    assert set(DIMENSIONS) - dimensions <= {"server", "fingerprint"}
