"""A lake in a bucket is maintained and queried like one in a directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure import KEY, Azure
from gcs import Google
from lake import Lake, end_lease, killed, tacho
from store import BUCKET, UNSET, Store, proxied
from test_commit import ask
from test_maintain import QUESTIONS, WINDOW

from tacho_fleet import cli, storage
from tacho_fleet.errors import FleetError

LANDING, WAREHOUSE = "us %/landing", "us/tables"
Fleet = tuple[Lake, dict[str, Path]]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a store for all tests of this file."""
    with Store.served() as port:
        yield port


@contextmanager
def reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty store, with the environment to reach it."""
    with proxied(store):
        if not store.is_translated:
            store.url = f"http://127.0.0.1:{store.port}"
        for name in UNSET:
            monkeypatch.delenv(name, raising=False)
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        storage._client.cache_clear()
        storage._copy.cache_clear()
        yield store


@pytest.fixture
def store(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty store of S3."""
    with reached(Store(port), monkeypatch) as store:
        yield store


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty store of Azure."""
    with Azure.served() as port, reached(Azure(port), monkeypatch) as store:
        # with a token Azurite allows no removal of objects
        monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        yield store


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty store of Google."""
    with Google.served() as port, reached(Google(port), monkeypatch) as store:
        yield store


@pytest.fixture(params=["azure", "google"])
def other(request: pytest.FixtureRequest) -> Store:
    """An empty store in which PyIceberg puts no tables."""
    return request.getfixturevalue(request.param)


def ship_all(fleet: Fleet, store: Store) -> None:
    """Ships the fleet of three as it is in its directory."""
    for server, tape in fleet[1].items():
        env = "prod" if server != "a" else "test"
        to = store.address(LANDING)
        tacho("ship", "--tape", tape, "--server", server, "--to", to, "--label", f"env={env}")
    assert len(store.objects(LANDING)) == len(files(fleet[0].root))


@pytest.fixture
def shipped(fleet_of_three: Fleet, store: Store) -> Lake:
    """The fleet of three in a bucket, and the same in a directory."""
    ship_all(fleet_of_three, store)
    return fleet_of_three[0]


def files(root: Path) -> list[Path]:
    """All files of a directory, without directories."""
    return [path for path in root.rglob("*") if path.is_file()]


def landing() -> str:
    """The address of the landed objects."""
    return f"s3://{BUCKET}/{LANDING}"


def words(place: Path, *others: str) -> tuple[str, ...]:
    """Arguments of commands that change tables."""
    place.mkdir(exist_ok=True)
    catalog = f"sqlite:///{place}/catalog.db"
    return (landing(), "--catalog", catalog, "--warehouse", f"s3://{BUCKET}/{WAREHOUSE}", *others)


def answers(lake: str) -> list[object]:
    """The answers of a lake."""
    asked = ((*question, *WINDOW, "--lake", lake, "--json") for question in QUESTIONS)
    return [cli.answer(question) for question in asked]


def tables(store: Store) -> set[str]:
    """The tables that have objects."""
    return {name.partition("/")[0] for name in store.objects(LANDING)}


def test_a_bucket_and_its_tables_answer_as_a_directory(
    shipped: Lake, store: Store, tmp_path: Path
) -> None:
    wanted = answers(str(shipped.root))
    assert answers(landing()) == wanted
    said = cli.answer(["commit", *words(tmp_path / "t"), "--most-hours", "3"])
    assert said.startswith("committed hours ")
    assert answers(f"sqlite:///{tmp_path}/t/catalog.db") == wanted
    assert all(name.startswith("tacho/") for name in store.objects(WAREHOUSE))
    assert cli.answer(["commit", *words(tmp_path / "t")]) == (
        "committed hours 0, rows 0, batches 0"
    )


def test_expiry_in_a_bucket_killed_at_any_step_is_run_again(
    shipped: Lake, store: Store, tmp_path: Path
) -> None:
    """Expiring also leaves one snapshot, the answers, and the objects that say hours were
    shipped."""
    place, lake = words(tmp_path / "t"), f"sqlite:///{tmp_path}/t/catalog.db"
    wanted = answers(str(shipped.root))
    cli.answer(["commit", *place, "--most-hours", "3"])
    orphan = f"{WAREHOUSE}/tacho/ticks/data/orphan.parquet"
    store.client().put_object(Bucket=BUCKET, Key=orphan, Body=b"")
    kept = cli.answer(["expire", *place])
    assert kept == "removed rows 0, snapshots 0, files 0, landed objects 0"
    steps = 0
    while killed(5**steps, "expire", *place, "--grace", "0s"):
        steps += 1
        end_lease(lake)
        assert answers(lake) == wanted
    assert steps > 2
    assert answers(lake) == wanted
    assert orphan.removeprefix(f"{WAREHOUSE}/") not in store.objects(WAREHOUSE)
    assert tables(store) == {"servers", "taken", "redaction"}
    with pytest.raises(FleetError, match="there is no history in"):
        answers(landing())


def test_redacted_values_are_in_no_object(shipped: Lake, store: Store, tmp_path: Path) -> None:
    place = words(tmp_path / "t")
    cli.answer(["commit", *place, "--most-hours", "3"])
    cli.answer(["redact", *place, "--database", "db1"])
    cli.answer(["redact", *place, "--server", "b/ü ~"])
    for place in ("us %", "us"):
        store.download(place, tmp_path / "all" / place)
    for path in (tmp_path / "all").rglob("*"):
        assert "server=b" not in str(path)
    from test_maintain import texts_of  # noqa: PLC0415

    assert "db1" not in texts_of(tmp_path / "all")
    keys = {row["key"] for row in ask(tmp_path / "t", "top", "database", *WINDOW)}
    assert keys == {"db0"}


def test_objects_of_another_store_are_read_committed_and_taken(
    fleet_of_three: Fleet, other: Store, tmp_path: Path
) -> None:
    """The tables' files are in a directory."""
    ship_all(fleet_of_three, other)
    wanted, landed = answers(str(fleet_of_three[0].root)), other.address(LANDING)
    assert answers(landed) == wanted
    place = (landed, "--catalog", f"sqlite:///{tmp_path}/catalog.db")
    cli.answer(["commit", *place, "--most-hours", "3"])
    assert answers(place[2]) == wanted
    cli.answer(["expire", *place, "--grace", "0s"])
    assert answers(place[2]) == wanted
    assert tables(other) == {"servers", "taken", "redaction"}
    with pytest.raises(FleetError, match="there is no history in"):
        answers(landed)
    assert any("server=b" in name for name in other.objects(LANDING))
    cli.answer(["redact", *place, "--server", "b/ü ~"])
    assert not any("server=b" in name for name in other.objects(LANDING))
    assert {row["key"] for row in ask(tmp_path, "top", "server", *WINDOW)} == {"a", "c"}


def test_objects_of_another_store_are_redacted(
    fleet_of_three: Fleet, other: Store, tmp_path: Path
) -> None:
    ship_all(fleet_of_three, other)
    place = (other.address(LANDING), "--catalog", f"sqlite:///{tmp_path}/catalog.db")
    cli.answer(["commit", *place])
    cli.answer(["redact", *place, "--server", "b/ü ~"])
    assert tables(other) == {"servers", "taken", "redaction"}
    assert not any("server=b" in name for name in other.objects(LANDING))


def test_an_object_that_is_gone_is_removed(other: Store) -> None:
    """Stores other than S3 report that there is no object."""
    storage.Storage.open(other.address(LANDING)).remove("nothing")


def test_a_removal_whose_answer_is_lost_is_repeated(google: Store) -> None:
    place = storage.Storage.open(google.address(LANDING))
    place.put("x")
    faults = iter(["cut"])
    google.fault = lambda _number, asked: next(faults, None) if asked.method == "DELETE" else None
    place.remove("x")
    assert [asked.status for asked in google.requests if asked.method == "DELETE"] == [200, 404]
    assert google.objects(LANDING) == {}


@pytest.mark.parametrize("engine", ["clickhouse", "datafusion"])
def test_other_engines_read_copies(
    shipped: Lake, store: Store, tmp_path: Path, engine: str
) -> None:
    if engine not in os.environ.get("TACHO_FLEET_ENGINES", "").split():
        pytest.skip("not among ENGINES")
    cli.answer(["commit", *words(tmp_path / "t")])
    question = ("top", "pid", "--n", "all", *WINDOW, "--json", "--lake")
    wanted = cli.answer([*question, str(shipped.root)])
    catalog = f"sqlite:///{tmp_path}/t/catalog.db"
    assert cli.answer([*question, catalog, "--engine", engine]) == wanted


def test_a_refusal_of_a_store_is_reported(store: Store) -> None:
    """The error has the bucket's name."""
    store.client().put_object(Bucket=BUCKET, Key="x/y", Body=b"")
    with pytest.raises(FleetError, match='could not list objects "s3://nobody/x/servers"'):
        answers("s3://nobody/x")
