"""Load of real tapes: the lake gives the answers of the tapes."""

from fractions import Fraction
from pathlib import Path

import pytest
from conftest import SERVERS
from lake import Answer, Lake, answer, sessions

Fleet = tuple[Lake, dict[str, Path]]
WINDOW = ("--since", "2026-03-01T10:07:03Z", "--until", "2026-03-01T12:00:00Z")
QUESTIONS = [
    ("aas",),
    ("aas", "--bucket", "10m", "--scope", "all", "--database", "db1"),
    ("aas", "--application", "!app1", "--query-id", "11,(null)"),
    ("top",),
    ("top", "query_id", "--n", "2"),
    ("top", "wait_event", "--by", "application", "--n", "2"),
    ("top", "application", "--by", "pid", "--n", "3", "--order-by", "sessions"),
    ("top", "pid", "--order-by", "p99", "--bucket", "90s"),
    ("top", "database", "--order-by", "peak", "--wait-event", "tuple,DataFileRead"),
    ("timeline",),
    ("timeline", "--bucket", "7m", "--by", "wait_event_type", "--n", "2"),
    ("timeline", "--bucket", "1h", "--by", "query_id", "--pid", "1,2"),
]


def four_places(value: Fraction) -> str:
    """Rounds half away from zero, to four places."""
    digits = (value * 20_000 + 1) // 2
    return f"{digits // 10_000}.{digits % 10_000:04}"


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_of_many_answers_as_its_tape(
    fleet_of_three: Fleet, server: str, question: tuple[str, ...]
) -> None:
    lake, tapes = fleet_of_three
    rows = lake.ask(*question, *WINDOW, "--server", f'"{server}"')
    assert all(row.pop("servers") in ("0", "1") for row in rows)
    assert rows == answer(*question, *WINDOW, "--tape", tapes[server])


def _loads(tapes: dict[str, Path]) -> list[Fraction]:
    """Loads of the fleet by minute, from the answers of each tape."""
    sums: dict[object, Fraction] = {}
    for server, tape in tapes.items():
        for row in answer("timeline", *WINDOW, "--bucket", "1m", "--tape", tape):
            ticks = int(str(row["ticks_observed"]))
            if ticks:
                load = Fraction(str(row["backend_seconds"])) / (ticks * SERVERS[server][1])
                sums[row["bucket_start"]] = sums.get(row["bucket_start"], Fraction()) + load
    return sorted(sums.values())


def test_the_load_of_a_fleet_is_the_sum_of_its_servers(fleet_of_three: Fleet) -> None:
    lake, tapes = fleet_of_three
    [row] = lake.ask("aas", *WINDOW)
    own = {server: answer("aas", *WINDOW, "--tape", tape)[0] for server, tape in tapes.items()}

    def sums(column: str) -> int:
        return sum(int(str(one[column])) for one in own.values())

    average = sum(
        Fraction(str(one["backend_seconds"])) / (int(str(one["ticks_observed"])) * SERVERS[name][1])
        for name, one in own.items()
    )
    assert row["avg_aas"] == four_places(Fraction(average))
    loads = _loads(tapes)
    place = Fraction(99, 100) * (len(loads) - 1)
    low, part = int(place), place - int(place)
    p99 = loads[low] + (loads[low + 1] - loads[low]) * part
    assert (row["peak_aas"], row["p99_aas"]) == (four_places(loads[-1]), four_places(p99))
    assert row["peak_sessions"] == max(str(one["peak_sessions"]) for one in own.values())
    for column in ("ticks_expected", "ticks_observed", "ticks_failed"):
        assert int(str(row[column])) == sums(column)
    assert row["servers"] == "3"


def test_servers_are_a_dimension_and_their_loads_add_up(fleet_of_three: Fleet) -> None:
    lake, tapes = fleet_of_three
    rows = lake.ask("top", "server", *WINDOW)
    told = {str(row["key"]): row["avg_aas"] for row in rows}
    own = {name: answer("aas", *WINDOW, "--tape", tape)[0] for name, tape in tapes.items()}
    assert told == {name: one["avg_aas"] for name, one in own.items()}
    assert list(told) == sorted(told, key=lambda name: -float(str(told[name])))


def test_a_wait_event_has_one_name_whatever_the_major_of_a_server(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.root.mkdir()
    for server, names in (("of 16", "IO,WALWrite"), ("of 17", "IO,WalWrite")):
        line = f"2026-03-01T10:00:00Z,60000,1,active,{names}\n"
        sessions(
            tmp_path / server, f"time,interval_ms,pid,state,wait_event_type,wait_event\n{line}"
        )
        lake.ship(tmp_path / server, server)
    for minutes in ((), ("--minutes",)):
        [row] = lake.ask("top", "wait_event", *minutes)
        assert (row["key"], row["avg_aas"]) == ("IO:WalWrite", "2.0000")


def test_each_server_has_its_coverage(fleet_of_three: Fleet) -> None:
    lake, tapes = fleet_of_three
    rows = lake.ask("servers", *WINDOW)
    assert [row["server"] for row in rows] == sorted(SERVERS)
    for row in rows:
        [own] = answer("aas", *WINDOW, "--tape", tapes[str(row["server"])])
        for column in ("ticks_expected", "ticks_observed", "coverage_pct"):
            assert row[column] == own[column]
    assert [row["hours"] for row in rows] == ["3", "2", "2"]


def test_labels_choose_servers(fleet_of_three: Fleet) -> None:
    lake, _ = fleet_of_three

    def named(*labels: str) -> list[object]:
        words = [word for label in labels for word in ("--label", label)]
        return [row["key"] for row in lake.ask("top", "server", *WINDOW, *words)]

    assert named("env=test") == ["a"]
    assert sorted(map(str, named("env=!test"))) == ["b/ü ~", "c"]
    assert named("env=test", "env=prod") == []
    assert named("color=red") == []


def test_the_window_without_arguments_is_the_newest_hour(fleet_of_three: Fleet) -> None:
    lake, tapes = fleet_of_three
    [row] = lake.ask("aas", "--server", "a")
    until = ("--since", "2026-03-01T12:00:00Z", "--until", "2026-03-01T13:00:00Z")
    assert row.pop("servers") == "1"
    assert [row] == answer("aas", *until, "--tape", tapes["a"])


def test_a_query_of_ones_own_sees_each_hour_once(fleet_of_three: Fleet) -> None:
    lake, _ = fleet_of_three
    rows: Answer = lake.ask(
        "sql", "SELECT server, count(*) AS n FROM servers GROUP BY ALL ORDER BY 1"
    )
    assert rows == [
        {"server": "a", "n": "3"},
        {"server": "b/ü ~", "n": "2"},
        {"server": "c", "n": "2"},
    ]
