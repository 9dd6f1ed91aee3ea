"""Damage and changes of a directory of objects."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import COLUMNS, samples
from lake import PROGRAM, Lake, answer, fleet, sessions, tacho

from tacho_fleet import storage
from tacho_fleet.errors import FleetError
from tacho_fleet.landing import HIVE_NULL
from tacho_fleet.times import micros, time

HOUR = ("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T11:00:00Z")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake without shipped objects."""
    (tmp_path / "lake").mkdir()
    return Lake(tmp_path / "lake")


def test_a_late_generation_counts_once_and_alone(lake: Lake, tmp_path: Path) -> None:
    tape = tmp_path / "tape"
    lines = samples(7, 720, 5, 4).splitlines(keepends=True)
    early = [line for line in lines if not "2026-03-01T10:30" <= line < "3"]
    late = [line for line in lines if line not in early[1:]]
    for part, objects, words in ((early, 1, ()), (late, 2, ("--append",))):
        tacho("import", "sessions", "-", "--tape", tape, *words, stdin="".join(part))
        lake.ship(tape, "late")
        assert len(list(lake.root.glob("ticks/**/*.parquet"))) == objects
        for question in (("aas",), ("top",)):
            rows = lake.ask(*question, *HOUR)
            assert [row.pop("servers") for row in rows] == ["1"] * len(rows)
            assert rows == answer(*question, *HOUR, "--tape", tape)


def test_an_hour_without_its_last_object_does_not_count(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(8, 1440, 5, 4))
    lake.ship(tmp_path / "tape", "half")
    [last] = lake.root.glob("servers/**/11-*.parquet")
    last.unlink()
    [row] = lake.ask("aas", "--since", "2026-03-01T10:00:00Z", "--until", "2026-03-01T12:00:00Z")
    [whole] = answer("aas", *HOUR, "--tape", tmp_path / "tape")
    assert row["backend_seconds"] == whole["backend_seconds"]
    assert row["ticks_observed"] == whole["ticks_observed"]


@pytest.mark.parametrize("words", [("aas",), ("top",), ("servers",), ("statements-history",)])
def test_a_directory_without_history_is_an_error(lake: Lake, words: tuple[str, ...]) -> None:
    done = lake.fleet(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f'error: there is no history in "{lake.root}"\n'
        "hint: Give --lake the destination of tacho ship. An hour is there once it is over.\n"
    )


def test_an_answer_without_rows_says_how_much_was_observed(lake: Lake, tmp_path: Path) -> None:
    line = "2026-03-01T10:00:00Z,1000,1,active,IO,Sync,db,app,1"
    sessions(tmp_path / "tape", f"{COLUMNS}\n{line}\n")
    lake.ship(tmp_path / "tape", "a")
    later = ("--since", "2026-03-02T10:00:00Z", "--until", "2026-03-02T11:00:00Z")
    for words, told in (((*HOUR, "--application", "nosuch"), "0.0278 %"), (later, "nothing")):
        for json in ((), ("--json",)):
            done = lake.fleet("top", *words, *json)
            assert done.returncode == 0
            assert done.stdout.endswith("[]\n" if json else "\n(no rows)\n")
            assert done.stderr == f"notice: no rows: {told} of the period was observed\n"


def test_a_name_that_hive_reads_as_null_is_a_name(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(15, 60, 5, 2))
    lake.ship(tmp_path / "tape", "a", "--label", "env=prod")
    refused = subprocess.run(
        [f"{PROGRAM}-ship", "--tape", tmp_path / "tape", "--to", f"file://{lake.root}", "--server",
         HIVE_NULL], capture_output=True, text=True, check=False)  # fmt: skip
    assert refused.returncode == 2
    assert "query engines read this name as null" in refused.stderr
    # a server that was shipped before its name was refused
    for of_server in lake.root.glob("*/server=a"):
        of_server.rename(of_server.with_name(f"server={HIVE_NULL}"))
    for dimension, key in (("server", HIVE_NULL), ("label:env", "prod")):
        assert [row["key"] for row in lake.ask("top", dimension, *HOUR)] == [key]


def test_servers_with_hours_missing_are_named(lake: Lake, tmp_path: Path) -> None:
    for name, ticks in (("dead", 720), ("alive", 2160)):
        sessions(tmp_path / name, samples(16, ticks, 5, 4))
        lake.ship(tmp_path / name, name)
    [gone] = lake.root.glob("servers/server=alive/day=2026-03-01/11-*.parquet")
    gone.unlink()
    rows = lake.ask("servers")
    told = [(row["server"], row["hours"], row["hours_missing"], row["last_hour"]) for row in rows]
    assert told == [
        ("alive", "2", "1", "2026-03-01T12:00:00Z"),
        ("dead", "1", "2", "2026-03-01T10:00:00Z"),
    ]
    said = lake.fleet("servers").stdout.splitlines()
    assert [line.split()[:3] for line in said] == [
        ["server", "host", "labels"], ["alive", "{}", "2"], ["dead", "{}", "1"]
    ]  # fmt: skip


def test_now_is_a_time(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(15, 60, 5, 2))
    lake.ship(tmp_path / "tape", "a")
    begin = micros(datetime.now(UTC))
    [row] = lake.ask("aas", "--since", "1m", "--until", "now")
    assert row["servers"] == "0"
    assert begin <= time("now", 0) <= micros(datetime.now(UTC))


def test_places_that_cannot_be_used_are_errors(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(15, 60, 5, 2))
    (tmp_path / "file").write_text("x")
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    done = fleet("commit", lake.root, "--catalog", catalog)
    assert (done.returncode, done.stderr) == (1, (
        f'error: tacho ship has put nothing into "{lake.root}"\n'
        "hint: Name the directory or bucket that tacho ship writes to.\n"
    ))  # fmt: skip
    lake.ship(tmp_path / "tape", "a")
    for words, said in (
        (
            ("commit", lake.root, "--catalog", catalog, "--warehouse", tmp_path / "file"),
            "could not read or write a file",
        ),
        (("aas", "--lake", lake.root, "--memory-limit-mb", "9" * 20), "could not make the answer"),
    ):
        done = fleet(*words)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: {said}\ndetail: "), done.stderr
        assert "Traceback" not in done.stderr


def test_a_directory_that_is_not_there_is_named() -> None:
    done = fleet("aas", "--lake", "/no/lake")
    assert done.returncode == 1
    assert done.stderr == (
        'error: could not read directory "/no/lake"\n'
        "hint: Name the directory that tacho ship writes to with --lake.\n"
    )


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_object_is_named(lake: Lake, tmp_path: Path, damage: str) -> None:
    sessions(tmp_path / "tape", samples(9, 1440, 5, 4))
    lake.ship(tmp_path / "tape", "broken")
    [damaged] = lake.root.glob("sample_runs/**/11-*.parquet")
    data = bytearray(damaged.read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    damaged.write_bytes(data)
    with pytest.raises(FleetError) as told:
        lake.ask("top", "--since", "2026-03-01T10:00:00Z")
    assert told.value.message == f'could not read object "{damaged}"'
    assert told.value.detail
    hour = f"server=broken/day=2026-03-01/{damaged.name}"
    assert told.value.hint == (
        f'If its server still has this hour, remove all objects "*/{hour}" and restart tacho ship, '
        "which puts them again."
    )
    # an answer that does not need the object is unchanged
    assert lake.ask("aas", *HOUR, "--server", "broken")[0]["servers"] == "1"


@pytest.mark.parametrize(
    "query",
    ["selec 1", "select nosuch", "select * from nosuch", "select database::int from sample_runs"],
)
def test_a_mistake_in_a_query_reads_no_objects(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    sessions(tmp_path / "tape", samples(9, 720, 5, 4))
    lake.ship(tmp_path / "tape", "a")
    read = []
    monkeypatch.setattr(storage, "read_table", read.append)
    with pytest.raises(FleetError) as told:
        lake.ask("sql", query)
    assert (told.value.message, read) == ("could not answer the query", [])


def test_damage_that_is_met_after_many_rows_is_named(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(9, 720, 5, 4))
    lake.ship(tmp_path / "tape", "broken")
    [damaged] = lake.root.glob("sample_runs/**/10-*.parquet")
    rows = pq.read_table(damaged, partitioning=None)
    times = 300_000 // rows.num_rows
    pq.write_table(pa.concat_tables([rows] * times), damaged, row_group_size=5_000)
    [column] = [at for at, name in enumerate(rows.column_names) if name == "database"]
    found = pq.read_metadata(damaged).row_group(55).column(column)
    data = bytearray(damaged.read_bytes())
    begin, size = found.data_page_offset, found.total_compressed_size
    data[begin : begin + size // 2] = bytes(size // 2)
    damaged.write_bytes(data)
    done = lake.fleet("sql", "select repeat(database, 200) from sample_runs")
    assert done.returncode == 1
    assert done.stderr.startswith(f'error: could not read object "{damaged}"\ndetail: ')
    assert done.stdout.count("\n") > 10_000


def test_a_schema_with_more_or_fewer_columns_is_read(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(10, 1440, 5, 4))
    lake.ship(tmp_path / "tape", "old")
    asked = (
        "top",
        "database",
        "--since",
        "2026-03-01T10:00:00Z",
        "--until",
        "2026-03-01T12:00:00Z",
    )
    before = lake.ask(*asked)
    [old] = lake.root.glob("sample_runs/**/10-*.parquet")
    table = pq.read_table(old, partitioning=None).drop_columns(["plan_id", "application"])
    pq.write_table(table.append_column("new", table["pid"]), old)
    assert lake.ask(*asked) == before
    keys = {row["key"] for row in lake.ask(*asked, "--application", "(null)")}
    assert keys == {"db0", "db1"}


def test_redacted_values_are_not_there(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(11, 720, 5, 4))
    lake.ship(tmp_path / "tape", "shy", "--redact", "applications,addresses,texts")
    rows = lake.ask("top", "application", *HOUR)
    assert [(row["key"], row["pct"]) for row in rows] == [(None, "100.0000")]
    assert (
        rows[0]["backend_seconds"]
        == answer("aas", *HOUR, "--tape", tmp_path / "tape")[0]["backend_seconds"]
    )


def test_texts_that_a_terminal_would_obey_are_shown_plain(lake: Lake, tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07ok\x9b31m\u202e"
    line = f"2026-03-01T10:00:00Z,1000,1,active,IO,Sync,db,{hostile},1"
    sessions(tmp_path / "tape", f"{COLUMNS}\n{line}\n")
    lake.ship(tmp_path / "tape", "sly")
    done = lake.fleet("top", "application", *HOUR)
    assert done.returncode == 0
    assert "\ufffd]0;owned\ufffdok\ufffd31m\ufffd" in done.stdout
    obeyed = set("\x1b\x07\x9b\u202e\x7f")
    assert not set(done.stdout) & obeyed
    [row] = lake.ask("top", "application", *HOUR)
    assert row["key"] == hostile
    title = f'SELECT 1 AS "{hostile}"'
    for words in (("top", "application", *HOUR, "--json"), ("sql", title), ("sql", title, "--json"),
                  ("top", hostile), ("sql", f"SELECT '{hostile}\x7f'::int")):  # fmt: skip
        done = lake.fleet(*words)
        assert "owned" in done.stdout + done.stderr
        assert not set(done.stdout + done.stderr) & obeyed


def test_identifiers_of_64_bits_are_texts_in_json(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(13, 60, 5, 2))
    lake.ship(tmp_path / "tape", "a")
    query = "SELECT 9007199254740993 AS query_id, -9007199254740993 AS plan_id, 7 AS pid"
    done = lake.fleet("sql", query, "--json")
    assert done.stdout == (
        '[\n{"query_id": "9007199254740993", "plan_id": "-9007199254740993", "pid": 7}\n]\n'
    )


def test_answers_fit_into_80_columns_unless_asked_to_be_wide(lake: Lake, tmp_path: Path) -> None:
    name = "n" * 100
    line = f"2026-03-01T10:00:00Z,1000,1,active,IO,Sync,db,{name},1"
    sessions(tmp_path / "tape", f"{COLUMNS}\n{line}\n")
    lake.ship(tmp_path / "tape", "wide")
    cut = lake.fleet("top", "application", *HOUR).stdout.splitlines()
    assert max(map(len, cut)) == 80
    assert name in lake.fleet("top", "application", *HOUR, "--wide").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("top", "nosuch"), 'dimension "nosuch" does not exist'),
        (("top", "--n", "0"), "n must be at least 1"),
        (("timeline", "--bucket", "1s", "--since", "300d"), "too many buckets"),
        (("timeline", "--bucket", "1 fortnight"), 'invalid interval "1 fortnight"'),
        (("aas", "--since", "soon"), 'invalid time "soon"'),
        (("aas", "--since", "1h", "--until", "2h"), "since must not be after until"),
        (("aas", "--database", "a,!b"),
         'filter "database" mixes included and excluded values'),
        (("aas", "--label", "env"), 'invalid label "env"'),
        (("sql", "SELECT nosuch"), "could not answer the query"),
        (("timeline", "--bucket", "0s"), "bucket must be greater than zero"),
        (("statements-history", "--bucket", "0s"), "bucket must be greater than zero"),
    ],
)  # fmt: skip
def test_mistakes_fail(lake: Lake, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    sessions(tmp_path / "tape", samples(15, 60, 5, 2))
    lake.ship(tmp_path / "tape", "a")
    with pytest.raises(FleetError) as told:
        lake.ask(*words)
    assert told.value.message == said
    assert told.value.hint or told.value.detail


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("aas", "--memory-limit-mb", "0"), "--memory-limit-mb: invalid value \"0\", give a whole "
         "number from 1 on"),
        (("commit", "x", "--catalog", "y", "--most-hours", "0"), "--most-hours: invalid value "
         "\"0\", give a whole number from 1 on"),
        (("expire", "--catalog", "y", "--wait", "-1"), "--wait: invalid value \"-1\", give "
         "seconds"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(words: tuple[str, ...], said: str) -> None:
    done = fleet(*words)
    command = f'hint: Try "tacho fleet {words[0]} --help".\n'
    told = f"error: argument {said}\n{command}"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_a_question_about_an_unknown_server_has_a_notice(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(15, 60, 5, 2))
    lake.ship(tmp_path / "tape", "a")
    for words in (("top",), ("statements-history",)):
        done = lake.fleet(*words, "--server", "b")
        assert done.stderr == "notice: no rows: no server has this name and label\n"
        assert done.stdout.startswith("2026-03-01 10:00:00 to 11:00:00 UTC\n")


def test_a_lake_can_be_moved(lake: Lake, tmp_path: Path) -> None:
    sessions(tmp_path / "tape", samples(12, 720, 5, 4))
    lake.ship(tmp_path / "tape", "a")
    before = lake.ask("top", *HOUR)
    moved = tmp_path / "it's [moved] 100%"
    shutil.move(lake.root, moved)
    assert Lake(moved).ask("top", *HOUR) == before
