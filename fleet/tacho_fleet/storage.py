"""The place of objects: a directory, or a bucket of an object store. All listing, reading, writing
and removing goes through this module. A bucket is reached with the library that `tacho ship` uses,
and with the same names in the environment."""

import io
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tacho_fleet.errors import FleetError

if TYPE_CHECKING:
    import duckdb
    from obstore.store import ObjectStore

# Schemes of addresses in object stores.
REMOTE = ("s3", "gs", "az", "abfs", "abfss")
# Directory of files that `tacho ship` is writing; it removes them itself.
UNFINISHED = ".tacho-ship"
# TLS is left out only if the environment names an endpoint without it.
_CLIENT = {"allow_http": True}


def is_remote(address: str) -> bool:
    """Is the address in an object store?"""
    return address.partition("://")[0] in REMOTE and "://" in address


@dataclass(frozen=True, order=True)
class Object:
    """An object: its name below the root, and the time it was written, in s since 1970."""

    name: str
    written: float


class Storage(ABC):
    """The objects below an address."""

    address: str

    @staticmethod
    def open(address: str) -> "Storage":
        """A directory, also as a file:// URL, or a prefix of a bucket."""
        kind = Bucket if is_remote(address) else Directory
        return kind(_normal(address))

    def uri(self, name: str) -> str:
        """The address of an object in the form for engines."""
        return f"{self.address}/{name}"

    def name_of(self, address: str) -> str:
        """The name of an object below the root, from its address."""
        found, root = _normal(address), f"{self.address.rstrip('/')}/"
        if not found.startswith(root):
            raise FleetError(f'file "{address}" is not below "{self.address}"')
        return found.removeprefix(root)

    @abstractmethod
    def objects(self, prefix: str = "") -> list[Object]:
        """Everything in a directory and below, by name."""

    @abstractmethod
    def existing(self, names: Iterable[str]) -> Iterator[str]:
        """The names that have an object."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of an object."""

    @abstractmethod
    def put(self, name: str, content: bytes = b"") -> None:
        """Writes an object."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes an object, if there is one."""

    def remove_all(self, prefix: str) -> int:
        """Removes a directory with everything in it; returns the number of objects."""
        found = self.objects(prefix)
        for each in found:
            self.remove(each.name)
        return len(found)


@dataclass(frozen=True)
class Directory(Storage):
    """Files on this machine."""

    address: str

    def _at(self, name: str) -> Path:
        return Path(self.address, name)

    def objects(self, prefix: str = "") -> list[Object]:
        """Everything in a directory and below, by name."""
        found, waiting = [], [self._at(prefix)]
        while waiting:
            place = waiting.pop()
            # another program may remove files and directories meanwhile
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(place) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        found += self._found(entry)
                    elif entry.name != UNFINISHED:
                        waiting.append(Path(entry.path))
        return sorted(found)

    def _found(self, entry: os.DirEntry[str]) -> Iterator[Object]:
        """The object of a file, unless it was removed."""
        with suppress(FileNotFoundError):
            yield Object(entry.path[len(self.address) + 1 :], entry.stat().st_mtime)

    def existing(self, names: Iterable[str]) -> Iterator[str]:
        """The names that have a file."""
        return (name for name in names if self._at(name).exists())

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return self._at(name).read_bytes()

    def put(self, name: str, content: bytes = b"") -> None:
        """Writes a file."""
        self._at(name).parent.mkdir(parents=True, exist_ok=True)
        self._at(name).write_bytes(content)

    def remove(self, name: str) -> None:
        """Removes a file, if there is one."""
        self._at(name).unlink(missing_ok=True)

    def remove_all(self, prefix: str) -> int:
        """Removes a directory with everything in it; returns the number of files."""
        removed = super().remove_all(prefix)
        if self._at(prefix).is_dir():
            shutil.rmtree(self._at(prefix))
        return removed


@dataclass(frozen=True)
class Bucket(Storage):
    """Objects of an object store."""

    address: str

    @property
    def _store(self) -> "ObjectStore":
        scheme, _, place = self.address.partition("://")
        return _client(f"{scheme}://{place.partition('/')[0]}")

    def _at(self, name: str) -> str:
        """The key of an object, which is used unchanged."""
        above = self.address.partition("://")[2].partition("/")[2]
        return "/".join(part for part in (above, name) if part)

    def objects(self, prefix: str = "") -> list[Object]:
        """Everything in a directory and below, by name."""
        skipped = len(self._at("x")) - 1
        with _told(f'list objects "{self.uri(prefix)}"'):
            pages = self._store.list(self._at(prefix) or None)
            found = (entry for page in pages for entry in page)
            return sorted(
                Object(entry["path"][skipped:], entry["last_modified"].timestamp())
                for entry in found
            )

    def existing(self, names: Iterable[str]) -> Iterator[str]:
        """The names that have an object, found by listing their directories."""
        names = list(names)
        directories = {name.rpartition("/")[0] for name in names}
        there = {found.name for place in sorted(directories) for found in self.objects(place)}
        return (name for name in names if name in there)

    def read(self, name: str) -> bytes:
        """The content of an object."""
        with _told(f'read object "{self.uri(name)}"'):
            return bytes(self._store.get(self._at(name)).bytes())

    def put(self, name: str, content: bytes = b"") -> None:
        """Writes an object."""
        with _told(f'write object "{self.uri(name)}"'):
            self._store.put(self._at(name), content)

    def remove(self, name: str) -> None:
        """Removes an object, if there is one."""
        # S3 reports nothing, other stores report that there is no object, also when a request
        # is repeated
        with _told(f'remove object "{self.uri(name)}"'), suppress(FileNotFoundError):
            self._store.delete(self._at(name))


@cache
def _client(bucket: str) -> "ObjectStore":
    # not needed for a directory
    from obstore.store import from_url  # noqa: PLC0415

    return from_url(bucket, client_options=_CLIENT)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Reports a refusal of a store, with its reason."""
    from obstore.exceptions import BaseError  # noqa: PLC0415

    try:
        yield
    except (BaseError, OSError) as error:
        detail = str(error).splitlines()[0].rstrip(".")
        raise FleetError(f"could not {what}", f"{detail}.") from error


def reachable(address: str) -> str:
    """The path of a file that may be given as a URL; an address in a store unchanged."""
    return unquote(address.removeprefix("file://")) if address.startswith("file:") else address


def _normal(address: str) -> str:
    """The one form of an address: a path has neither `//` nor `/./`. A key of a bucket is used
    unchanged."""
    return address.rstrip("/") if is_remote(address) else str(Path(reachable(address)).absolute())


def _found(address: str) -> tuple[Storage, str]:
    """The storage of an object, and its name."""
    directory, _, name = reachable(address).rpartition("/")
    return Storage.open(directory), name


def read(address: str) -> bytes:
    """The content of an object."""
    storage, name = _found(address)
    return storage.read(name)


def read_table(address: str) -> pa.Table:
    """The rows of a Parquet file, given by path or address."""
    file = io.BytesIO(read(address)) if is_remote(address) else address
    return pq.read_table(file, partitioning=None)


def copies(addresses: Sequence[str], place: str) -> list[str]:
    """Paths of files for readers that can only read local files: files in buckets are copied."""
    return [_copy(address, place) if is_remote(address) else address for address in addresses]


@cache
def _copy(address: str, place: str) -> str:
    file, path = mkstemp(suffix=".parquet", dir=place)
    with os.fdopen(file, "wb") as copy:
        copy.write(read(address))
    return path


def properties() -> dict[str, str]:
    """Properties that PyIceberg needs for files in S3, beside those that Arrow finds itself."""
    names = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.region": "AWS_REGION"}
    given = {name: os.environ.get(known) for name, known in names.items()}
    return {name: value for name, value in given.items() if value}


def register(connection: "duckdb.DuckDBPyConnection", addresses: Sequence[str]) -> None:
    """Lets DuckDB read files in object stores, with the same client."""
    for scheme in sorted({a.partition("://")[0] for a in addresses if is_remote(a)}):
        # not needed for a directory
        from obstore.fsspec import FsspecStore  # noqa: PLC0415

        connection.register_filesystem(FsspecStore(scheme, client_options=_CLIENT))
