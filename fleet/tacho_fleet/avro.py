"""Reads Avro files, in which Iceberg lists its files."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SYNC = 16
_MAGIC = b"Obj\x01"
# Bit of a byte of a number: more bytes follow.
_MORE = 0x80

Value = object


@dataclass
class _Bytes:
    """The unread part of a block."""

    content: bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        """Takes the next bytes."""
        self.at += length
        return self.content[self.at - length : self.at]

    def number(self, _kind: object = None) -> int:
        """A whole number with seven bits per byte, zigzag."""
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & ~_MORE) << shift
            shift += 7
            if not byte & _MORE:
                return (value >> 1) ^ -(value & 1)

    def data(self, _kind: object = None) -> bytes:
        """Bytes with their length before them."""
        return self.take(self.number())


def records(content: bytes) -> Iterator[dict[str, Value]]:
    """The records of a file."""
    file = _Bytes(content)
    if file.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("not a file of Avro")
    head = _map(file, {"values": "bytes"})
    schema = json.loads(head["avro.schema"])
    is_packed = head.get("avro.codec", b"null") == b"deflate"
    file.take(_SYNC)
    while file.at < len(content):
        count, block = file.number(), file.data()
        rows = _Bytes(zlib.decompress(block, -zlib.MAX_WBITS) if is_packed else block)
        for _ in range(count):
            yield _record(rows, schema)
        file.take(_SYNC)


def _value(rows: _Bytes, kind: object) -> Value:
    if isinstance(kind, list):
        return _value(rows, kind[rows.number()])
    name = kind["type"] if isinstance(kind, dict) else kind
    if isinstance(name, dict | list):
        return _value(rows, name)
    return _KINDS[name](rows, kind)


def _record(rows: _Bytes, kind: dict) -> dict[str, Value]:
    return {field["name"]: _value(rows, field["type"]) for field in kind["fields"]}


def _blocks(rows: _Bytes) -> Iterator[None]:
    """Yields once per item. A negative count is followed by the size of the block."""
    while count := rows.number():
        if count < 0:
            rows.number()
        for _ in range(abs(count)):
            yield


def _array(rows: _Bytes, kind: dict) -> list[Value]:
    return [_value(rows, kind["items"]) for _ in _blocks(rows)]


def _map(rows: _Bytes, kind: dict) -> dict[str, Value]:
    return {rows.data().decode(): _value(rows, kind["values"]) for _ in _blocks(rows)}


_KINDS: dict[str, Callable[..., Value]] = {
    "null": lambda _rows, _kind: None,
    "boolean": lambda rows, _kind: rows.take(1) == b"\x01",
    "int": _Bytes.number,
    "long": _Bytes.number,
    "float": lambda rows, _kind: rows.take(4),
    "double": lambda rows, _kind: rows.take(8),
    "bytes": _Bytes.data,
    "string": lambda rows, _kind: rows.data().decode(),
    "fixed": lambda rows, kind: rows.take(kind["size"]),
    "record": _record,
    "array": _array,
    "map": _map,
}
