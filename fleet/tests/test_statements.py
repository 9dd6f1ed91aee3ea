"""Statistics of real tapes: the lake gives the answers of the tapes."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import COUNTED
from lake import Lake, answer
from test_samples import four_places

Fleet = tuple[Lake, dict[str, Path]]
WINDOW = ("--since", "2026-03-02T10:10:20Z", "--until", "2026-03-02T12:10:00Z")
QUESTIONS = [
    (),
    ("--n", "all"),
    ("--n", "3", "--bucket", "1h"),
    ("--n", "2", "--bucket", "7m", "--order-by", "p99"),
    ("--order-by", "mean", "--database", "db1"),
    ("--order-by", "calls", "--username", "!user1", "--toplevel", "true"),
    ("--order-by", "cpu", "--query-id", "101,102,(null)"),
    ("--order-by", "user_time", "--n", "2"),
]


def statement(row: dict[str, object]) -> tuple[object, ...]:
    """The columns that identify a statement."""
    return tuple(row[column] for column in ("key", "database", "username", "toplevel"))


def ended(*words: object) -> list[dict[str, object]]:
    """The answer of a tape, without statements that only run: these come from samples, which the
    question to a lake does not use."""
    rows = answer(*words)
    called = {statement(row) for row in rows if row["calls"] not in (None, "0")}
    rows = [row for row in rows if statement(row) in called]
    for row in rows:
        del row["running"], row["running_time"], row["last_call"]
    return rows


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("server", COUNTED)
def test_a_server_answers_as_its_tape(
    lake_and_tapes: Fleet, server: str, question: tuple[str, ...]
) -> None:
    lake, tapes = lake_and_tapes
    rows = lake.ask("statements-history", *question, *WINDOW, "--server", server)
    wanted = ended("statements-history", *question, *WINDOW, "--tape", tapes[server])
    assert wanted
    assert all(row.pop("servers") in ("0", "1") for row in rows)
    assert rows == wanted


def test_counters_and_rates_of_servers_add_up(lake_and_tapes: Fleet) -> None:
    lake, tapes = lake_and_tapes
    asked = ("statements-history", *WINDOW, "--n", "all")
    rows = {(row["key"], row["toplevel"]): row for row in lake.ask(*asked)}
    own = [ended(*asked, "--tape", tape) for tape in tapes.values()]
    for key, row in rows.items():
        of_key = [one for part in own for one in part if (one["key"], one["toplevel"]) == key]
        assert len(of_key) == 2
        for column in ("calls", "rows"):
            assert int(str(row[column])) == sum(int(str(one[column])) for one in of_key)
        time = sum(Fraction(str(one["total_exec_time"])) for one in of_key)
        assert row["total_exec_time"] == four_places(time)
        assert row["mean_exec_time"] == four_places(time / int(str(row["calls"])))
        rate = sum(float(str(one["calls_per_second"])) for one in of_key)
        assert abs(float(str(row["calls_per_second"])) - rate) < 0.00011
        assert row["servers"] == "2"


def test_fingerprints_join_servers(lake_and_tapes: Fleet) -> None:
    lake, _ = lake_and_tapes
    rows = lake.ask("statements-history", "fingerprint", *WINDOW)
    texts = {row["query_text"] for row in rows if row["key"] != "(evicted)"}
    assert texts == {f"select /* {query} */  1" for query in (101, 102, 103)}
    [first] = [row for row in rows if row["query_text"] == "select /* 102 */  1"]
    [alone] = lake.ask("statements-history", "fingerprint", *WINDOW, "--fingerprint", first["key"])
    assert alone["calls"] == first["calls"]
    by_query = lake.ask("statements-history", "query_id", *WINDOW, "--query-id", "102")
    assert by_query[0]["calls"] == first["calls"]
    [of_samples] = lake.ask("top", "fingerprint", *WINDOW, "--fingerprint", first["key"])
    assert of_samples["query_text"] == "select /* 102 */  1"


def test_servers_are_a_dimension(lake_and_tapes: Fleet) -> None:
    lake, tapes = lake_and_tapes
    rows = lake.ask("statements-history", "server", *WINDOW)
    told = {row["key"]: int(str(row["calls"])) for row in rows}
    own = {
        name: answer("statements-history", *WINDOW, "--tape", tape) for name, tape in tapes.items()
    }
    assert told == {name: sum(int(str(row["calls"])) for row in rows) for name, rows in own.items()}


@pytest.mark.parametrize("question", [(), ("--order-by", "calls"), ("--bucket", "1h")])
def test_labels_are_dimensions_and_choose_servers(
    lake_and_tapes: Fleet, question: tuple[str, ...]
) -> None:
    """Both servers have one label, one server has another, and no server a third."""
    lake, _ = lake_and_tapes

    def told(*words: str, key: object) -> list[dict[str, object]]:
        """The rows of a key, without it."""
        rows = lake.ask("statements-history", *words, *question, *WINDOW)
        return [row for row in rows if row.pop("key") == key]

    everything = told("label:team", key="a")
    assert everything and everything == told("label:zone", key=None)
    alone = told("server", "--server", "one", key="one")
    assert alone and alone == told("label:env", "--label", "env=it's", key="it's")

    def calls(*words: str, key: object) -> list[object]:
        return [row["calls"] for row in told(*words, key=key)]

    assert calls("label:env", key="it's") == calls("server", key="one")
    assert calls("label:env", key=None) == calls("server", key="two")


def test_without_rows_a_notice_has_the_recorded_share(
    lake_and_tapes: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, _ = lake_and_tapes
    asked = ("statements-history", "--database", "nobody")
    assert (
        lake.ask(*asked, "--since", "2026-03-02T10:00:00Z", "--until", "2026-03-03T10:00:00Z") == []
    )
    # 150 minutes of a day, less the intervals that were left out
    said = capsys.readouterr().err
    share = re.fullmatch(r"notice: no rows: (\d+\.\d{4}) % of the period was recorded\n", said)
    assert share and 9 < float(share[1]) < 10.42
    assert (
        lake.ask(*asked, "--since", "2026-03-02T13:00:00Z", "--until", "2026-03-02T14:00:00Z") == []
    )
    assert capsys.readouterr().err == "notice: no rows: nothing of the period was recorded\n"
