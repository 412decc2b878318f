"""The values of a partition, from a record's bytes to JSON.

They are in the form that `rookery.model.predicate` describes, with bytes as hex.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rookery.model import FormatError, Place
from rookery.tables.iceberg.avro.interpreter import sized, varint
from rookery.tables.iceberg.avro.schema import Names

Decode = Callable[[bytes, int], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Decodes records of plain values, whose bytes the interpreter has already checked."""

    decoders: tuple[Decode, ...]

    def json(self, data: bytes, place: Place) -> str:
        """Return the values of a record as a JSON list."""
        at, values = 0, []
        try:
            for decode in self.decoders:
                value, at = decode(data, at)
                values.append(value)
        except UnicodeDecodeError as error:
            raise FormatError(place, "text in a partition", str(error)) from error
        return json.dumps(values)


def record_reader(schema: dict[str, Any], names: Names) -> RecordReader:
    """Return a reader for records of *schema*."""
    with names.inside(schema) as fields:
        return RecordReader(tuple(_decoder(field.get("type"), names) for field in fields))


def _decoder(schema: Any, names: Names) -> Decode:
    kind, schema = names.resolve(schema)
    if kind == "union":
        return partial(_branch, tuple(_decoder(branch, names) for branch in schema))
    if kind in _PLAIN:
        number = schema.get("logicalType") == "decimal"
        return partial(_sized, _unscaled) if number and kind == "bytes" else _PLAIN[kind]
    if kind == "fixed":
        shown = _unscaled if schema.get("logicalType") == "decimal" else bytes.hex
        return partial(_fixed, shown, names.fixed_size(schema))
    raise names.error("a plain type in a partition", kind)


def _branch(branches: tuple[Decode, ...], data: bytes, at: int) -> tuple[Any, int]:
    branch, at = varint(data, at)
    value, at = branches[branch](data, at)
    return value, at


def _number(data: bytes, at: int) -> tuple[Any, int]:
    value, at = varint(data, at)
    return value, at


def _null(data: bytes, at: int) -> tuple[Any, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[Any, int]:
    return data[at] != 0, at + 1


def _sized(show: Callable[[bytes], Any], data: bytes, at: int) -> tuple[Any, int]:
    length, at = sized(data, at)
    return show(data[at : at + length]), at + length


def _fixed(show: Callable[[bytes], Any], size: int, data: bytes, at: int) -> tuple[Any, int]:
    return show(data[at : at + size]), at + size


def _unscaled(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


_PLAIN: dict[str, Decode] = {
    "null": _null,
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": partial(_fixed, lambda data: struct.unpack("<f", data)[0], 4),
    "double": partial(_fixed, lambda data: struct.unpack("<d", data)[0], 8),
    "string": partial(_sized, bytes.decode),
    "bytes": partial(_sized, bytes.hex),
}
