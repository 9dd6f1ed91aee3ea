"""An object store that speaks S3, behind a proxy that breaks requests on demand."""

import http.client
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "lake"
PROBE = ".tacho-ship/probe"
SECRET = "a-secret-that-nobody-prints"
KEYS = {"AWS_ACCESS_KEY_ID": "shipper", "AWS_SECRET_ACCESS_KEY": SECRET}
# variables that would lead elsewhere
UNSET = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy",
         "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")  # fmt: skip
# request headers hidden from the store, by fault; and answer headers that are passed on
HIDDEN = {"blind": ("if-none-match", "x-goog-if-generation-match")}
KEPT = {"etag", "content-type", "content-range", "last-modified", "x-goog-generation"}
# Status, headers and content of an answer.
Answer = tuple[int, Mapping[str, str], bytes]


@dataclass
class Request:
    """A request of a client, and the status of its answer."""

    method: str
    path: str
    status: int = 0


# Decides, from a request and its number, how the request is broken before the store
# gets it.
Fault = Callable[[int, Request], str | None]


@dataclass
class Store:
    """A proxy before a store. Faults are "drop", "500", "409", "stall", "cut" (done, but no
    answer) and "blind" (the store does not see the condition)."""

    port: int
    fault: Fault = lambda _number, _request: None
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    scheme: ClassVar = "s3"
    secret: ClassVar = SECRET
    # whether the store can take some requests only through the proxy
    is_translated: ClassVar = False

    def environment(self) -> dict[str, str]:
        """Environment variables for shipping and asking."""
        return KEYS | {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": "us-east-1"}

    def address(self, prefix: str) -> str:
        """The address of a prefix."""
        return f"{self.scheme}://{BUCKET}/{prefix}"

    def client(self) -> "boto3.client":
        """A client whose requests are not broken."""
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def objects(self, prefix: str) -> dict[str, str]:
        """The MD5 of every object below a prefix, except the probe that shows that a store puts an
        object only once."""
        pages = self.client().get_paginator("list_objects_v2")
        pages = pages.paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
        found = [entry for page in pages for entry in page.get("Contents", [])]
        return {
            entry["Key"].removeprefix(f"{prefix}/"): entry["ETag"].strip('"')
            for entry in found
            if not entry["Key"].endswith(PROBE)
        }

    def download(self, prefix: str, root: Path) -> None:
        """Downloads every object below a prefix as a file."""
        for name in self.objects(prefix):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.client().download_file(BUCKET, f"{prefix}/{name}", str(path))

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The store's answer to a request."""
        inner = http.client.HTTPConnection("127.0.0.1", self.port)
        inner.request(method, path, body, dict(headers))
        answer = inner.getresponse()
        content = answer.read()
        inner.close()
        return answer.status, answer.headers, content

    def create(self) -> None:
        """Makes the bucket."""
        self.client().create_bucket(Bucket=BUCKET)

    def drop(self) -> None:
        """Removes the bucket with everything in it."""
        client = self.client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for entry in page.get("Contents", []):
                client.delete_object(Bucket=BUCKET, Key=entry["Key"])
        client.delete_bucket(Bucket=BUCKET)

    def puts(self) -> list[str]:
        """The names of the objects that were put, each once per put."""
        done = [r.path for r in self.requests if r.method == "PUT" and r.status in (200, 201)]
        return [path for path in done if not path.endswith(PROBE)]

    @classmethod
    @contextmanager
    def served(cls) -> Iterator[int]:
        """Runs a store; yields its port."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            yield server.get_host_and_port()[1]
        finally:
            server.stop()


class Proxy(BaseHTTPRequestHandler):
    """Answers for the store of its subclass."""

    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: object) -> None:
        """Logs nothing."""

    def answer(self) -> None:
        """Passes a request on, or breaks it."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self.command, self.path.partition("?")[0])
        with self.store.lock:
            number = len(self.store.requests)
            self.store.requests.append(request)
        fault = self.store.fault(number, request)
        if fault == "stall":
            self.store.ended.wait()
        if fault in ("stall", "drop"):
            self.close_connection = True
        elif fault in ("500", "409"):
            request.status = int(fault)
            self.send(request.status, {}, b"<Error><Code>Broken</Code></Error>")
        else:
            self.forward(request, body, fault)

    do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815

    def forward(self, request: Request, body: bytes, fault: str | None) -> None:
        """Passes a request to the store and its answer back."""
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HIDDEN.get(fault, ())}
        request.status, told, content = self.store.ask(self.command, self.path, headers, body)
        if fault == "cut":
            self.close_connection = True
            return
        kept = {k: v for k, v in told.items() if k.lower() in KEPT}
        if self.command == "HEAD":
            kept["Content-Length"] = told["Content-Length"]
        self.send(request.status, kept, content)

    def send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        """Sends an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def proxied(store: Store) -> Iterator[Store]:
    """A store with an empty bucket, behind a proxy of its own."""
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (Proxy,), {"store": store}))
    proxy.daemon_threads = True
    store.url = f"http://127.0.0.1:{proxy.server_port}"
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
    thread.start()
    store.create()
    try:
        yield store
    finally:
        store.ended.set()
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        store.drop()
