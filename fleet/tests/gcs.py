"""fake-gcs-server, which speaks the protocol of Google's object store; test.sh installs it if there
is Go.

It has Google's XML interface to list, read and remove, but not to put. A put is passed on as the
upload of the JSON interface that Google documents to do the same: header
`x-goog-if-generation-match` is its parameter `ifGenerationMatch`. Both are refused with 412."""

import base64
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.error import URLError
from urllib.parse import quote, unquote, urlencode

import pytest
from store import BUCKET, PROBE, Answer, Store

SECRET = "a private key that nobody has to keep"
PROGRAM = Path(sys.prefix, "google/fake-gcs-server")


class Google(Store):
    """Clients have the key of a service; the store accepts every client."""

    scheme: ClassVar = "gs"
    secret: ClassVar = SECRET
    is_translated: ClassVar = True

    def environment(self) -> dict[str, str]:
        """Environment variables for shipping and asking."""
        key = {"client_email": "shipper", "private_key_id": "1", "private_key": SECRET}
        key |= {"gcs_base_url": self.url, "disable_oauth": True}
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key)}

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The store's answer to a request; a put is translated."""
        if method != "PUT":
            return super().ask(method, path, headers, body)
        given = {name.lower(): value for name, value in headers.items()}
        named = {"uploadType": "media", "name": unquote(path.removeprefix(f"/{BUCKET}/"))}
        condition = given.get("x-goog-if-generation-match")
        named |= {"ifGenerationMatch": condition} if condition else {}
        path = f"/upload/storage/v1/b/{BUCKET}/o?{urlencode(named)}"
        status, _, content = super().ask("POST", path, {}, body)
        if status != 200:
            return status, {}, content
        made = json.loads(content)
        return status, {"ETag": f'"{made["etag"]}"', "x-goog-generation": made["generation"]}, b""

    def _json(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The answer of the JSON interface, without the proxy."""
        address = f"http://127.0.0.1:{self.port}{path}"
        asked = urllib.request.Request(address, data=body or None, method=method)
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked) as answer:
            return answer.read()

    def _listed(self, prefix: str) -> list[dict[str, str]]:
        """All objects below a prefix; the store makes pages only on request."""
        query = urlencode({"prefix": prefix, "maxResults": 100_000})
        listed = json.loads(self._json("GET", f"/storage/v1/b/{BUCKET}/o?{query}"))
        assert "nextPageToken" not in listed
        return listed.get("items", [])

    def objects(self, prefix: str) -> dict[str, str]:
        """The MD5 of every object below a prefix, except the probe."""
        return {
            each["name"].removeprefix(f"{prefix}/"): base64.b64decode(each["md5Hash"]).hex()
            for each in self._listed(f"{prefix}/")
            if not each["name"].endswith(PROBE)
        }

    def download(self, prefix: str, root: Path) -> None:
        """Downloads every object below a prefix as a file."""
        for name in self.objects(prefix):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            key = quote(f"{prefix}/{name}", safe="")
            path.write_bytes(self._json("GET", f"/storage/v1/b/{BUCKET}/o/{key}?alt=media"))

    def create(self) -> None:
        """Makes the bucket."""
        self._json("POST", "/storage/v1/b", json.dumps({"name": BUCKET}).encode())

    def drop(self) -> None:
        """Removes the bucket with everything in it."""
        for each in self._listed(""):
            self._json("DELETE", f"/storage/v1/b/{BUCKET}/o/{quote(each['name'], safe='')}")
        self._json("DELETE", f"/storage/v1/b/{BUCKET}")

    @classmethod
    @contextmanager
    def served(cls) -> Iterator[int]:
        """Runs a store; yields its port."""
        if not PROGRAM.exists():
            pytest.skip("there is no fake-gcs-server: test.sh could not install it by Go")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [PROGRAM, "-backend", "memory", "-scheme", "http", "-log-level", "error"]
        command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", "127.0.0.1"]
        with subprocess.Popen(command) as server:
            try:
                while not _answers(port):
                    assert server.poll() is None
                    time.sleep(0.05)
                yield port
            finally:
                server.terminate()


def _answers(port: int) -> bool:
    """Does it listen yet?"""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_internal/healthcheck").close()
    except URLError:
        return False
    return True
