"""Azurite, which speaks the protocol of Azure's object store; test.sh installs it if there is
npm."""

import base64
import hashlib
import hmac
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import ClassVar
from urllib.parse import urlencode

import pytest
from obstore.store import AzureStore
from store import BUCKET, PROBE, Store

ACCOUNT = "shipper"
KEY = base64.b64encode(b"a key that nobody has to keep").decode()
PROGRAM = Path(sys.prefix, "azurite/node_modules/.bin/azurite-blob")


def _signature(told: dict[str, str]) -> str:
    """The signature of a token with these fields."""
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")
    lines = "".join(f"{text}\n" for text in (ACCOUNT, *(told.get(name, "") for name in names)))
    signed = hmac.new(base64.b64decode(KEY), lines.encode(), hashlib.sha256)
    return base64.b64encode(signed.digest()).decode()


def _token() -> dict[str, str]:
    """A token with all rights that does not expire."""
    told = {"sp": "rwdlac", "ss": "b", "srt": "sco", "spr": "https,http"}
    told |= {"se": "2099-01-01T00:00:00Z", "sv": "2019-12-12"}
    return told | {"sig": _signature(told)}


def _port(server: subprocess.Popen[bytes], log: Path) -> int:
    """The port, once the server has printed it."""
    while server.poll() is None:
        found = re.search(r"listens on http://127.0.0.1:(\d+)", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text())


class Azure(Store):
    """A container instead of a bucket. Its token is part of each request's address."""

    scheme: ClassVar = "az"
    secret: ClassVar = urlencode({"sig": _token()["sig"]})

    def environment(self) -> dict[str, str]:
        """Environment variables for shipping and asking."""
        return {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": self.url,
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_SAS_TOKEN": urlencode(_token()),
        }

    def _endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    def _client(self) -> AzureStore:
        """A client whose requests are not broken."""
        return AzureStore(
            BUCKET,
            endpoint=self._endpoint(),
            account_name=ACCOUNT,
            sas_key=urlencode(_token()),
            client_options={"allow_http": True},
        )

    def objects(self, prefix: str) -> dict[str, str]:
        """The MD5 of every object below a prefix, except the probe."""
        found = (entry["path"] for page in self._client().list(prefix) for entry in page)
        names = [name for name in found if not name.endswith(PROBE)]
        return {
            name.removeprefix(f"{prefix}/"): md5(self._read(name)).hexdigest() for name in names
        }

    def _read(self, name: str) -> bytes:
        return bytes(self._client().get(name).bytes())

    def download(self, prefix: str, root: Path) -> None:
        """Downloads every object below a prefix as a file."""
        for name in self.objects(prefix):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._read(f"{prefix}/{name}"))

    def create(self) -> None:
        """Makes the container."""
        self._ask("PUT")

    def drop(self) -> None:
        """Removes the container with everything in it."""
        self._ask("DELETE")

    def _ask(self, method: str) -> None:
        query = urlencode({"restype": "container"} | _token())
        address = f"{self._endpoint()}/{BUCKET}?{query}"
        urllib.request.urlopen(urllib.request.Request(address, method=method)).close()

    @classmethod
    @contextmanager
    def served(cls) -> Iterator[int]:
        """Runs a store; yields its port."""
        if not PROGRAM.exists():
            pytest.skip("there is no Azurite: test.sh could not install it by npm")
        command = [PROGRAM, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]
        command += ["--skipApiVersionCheck", "--disableTelemetry"]
        env = os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        with NamedTemporaryFile() as log, subprocess.Popen(command, env=env, stdout=log) as server:
            try:
                yield _port(server, Path(log.name))
            finally:
                server.terminate()
