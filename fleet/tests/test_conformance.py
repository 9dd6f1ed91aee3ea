"""The cases of `conformance/` that a lake can answer, run on shipped hours."""

import pytest
from lake import Lake, case_files, dimensions

from tacho_fleet.load import DIMENSIONS

FUNCTIONS = ("aas", "top", "timeline", "compare")
# Arguments that a fleet does not have, each with the reason.
LEFT_OUT = {
    "tz": "times of a fleet are UTC",
    "node": "a server is one, whatever nodes it has had",
}
# Ship keeps one text of a query id.
CASES_LEFT_OUT = (
    "a query id in two databases shows the text of the database asked for",
    "split by database each part shows its text",
)


COLUMNS, DERIVED = dimensions()
# Dimensions of a fleet alone.
OF_FLEETS = {"server", "fingerprint"}


def _is_answered(case: dict) -> bool:
    arguments = case["arguments"]
    named = {arguments.get("dimension"), arguments.get("by"), *arguments} - {None}
    return (
        case["function"] in FUNCTIONS
        and "rows" in case
        and case["name"] not in CASES_LEFT_OUT
        and case.get("zone", "UTC") == "UTC"
        and not named & {*LEFT_OUT, *DERIVED}
        and case.get("needs") != "tags"
    )


CASES = [
    pytest.param(file["server"], case, id=f"{file['server']}: {case['name']}")
    for file in case_files()
    for case in file["cases"]
    if _is_answered(case)
]


def words_of(case: dict) -> list[str]:
    """The command line of a case."""
    arguments = dict(case["arguments"])
    words = [case["function"]]
    words += [arguments.pop("dimension")] if "dimension" in arguments else []
    for key, value in arguments.items():
        option = f"--{key.replace('_', '-')}"
        if key == "by_leader":
            words += [option] if value else []
        else:
            words.append(f"{option}={'all' if value is None else value}")
    return words


@pytest.mark.parametrize(("server", "case"), CASES)
def test_a_server_of_many_answers_as_its_tape(
    server: str, case: dict, fleet_of_inputs: Lake
) -> None:
    got = fleet_of_inputs.ask(*words_of(case), "--server", server)
    assert len(got) == len(case["rows"])
    for row, want in zip(got, case["rows"], strict=True):
        assert {column: row[column] for column in want} == want


def test_most_cases_have_their_answer_compared() -> None:
    of_functions = [c for f in case_files() for c in f["cases"] if c["function"] in FUNCTIONS]
    assert len(CASES) >= 100, f"{len(CASES)} of {len(of_functions)}"
    assert {case.values[1]["function"] for case in CASES} == set(FUNCTIONS)
    asked = {case.values[1]["arguments"].get("dimension") for case in CASES}
    assert set(DIMENSIONS) - asked <= OF_FLEETS


def test_the_dimensions_are_the_columns_of_the_catalog() -> None:
    assert [name for name in DIMENSIONS if name not in OF_FLEETS] == COLUMNS
    assert set(DERIVED) & set(DIMENSIONS) == set()
