"""From a writer's schema and a shape to a program for the `interpreter`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rookery.model import IN_MEMORY, FormatError, Place
from rookery.tables.iceberg.avro import interpreter
from rookery.tables.iceberg.avro.schema import Names, parse
from rookery.tables.iceberg.avro.shape import Chars, Fields, Items, Number, Raw, Shape, columns_of
from rookery.tables.iceberg.avro.values import RecordReader, record_reader

_LONGEST = 1 << 18
_DEEPEST = 64
_WIDTHS = {"boolean": 1, "float": 4, "double": 8, "null": 0}
_SKIPS = {"int": interpreter.SKIP_NUMBER, "long": interpreter.SKIP_NUMBER, "enum": interpreter.SKIP_NUMBER}
_SKIPS |= {"bytes": interpreter.SKIP_BYTES, "string": interpreter.SKIP_BYTES}
_PAIRS = {interpreter.LONG: interpreter.PAIRS_OF_LONGS, interpreter.BYTES: interpreter.PAIRS_OF_BYTES}


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, how many registers they use, and readers for the columns of raw records."""

    code: NDArray[np.int64]
    registers: int
    readers: Mapping[str, RecordReader]


def compile_program(schema: bytes, shape: Fields, place: Place) -> Program:
    """Return the program that reads *shape* from records of *schema*, which is at *place*."""
    try:
        return _compiled(schema, shape)
    except FormatError as error:
        raise FormatError(place, error.expected, error.found) from error


@lru_cache(maxsize=256)  # as the manifests of a table have few schemas
def _compiled(schema: bytes, shape: Fields) -> Program:
    compiler = _Compiler(Names(IN_MEMORY), columns_of(shape))
    if compiler.value(parse(schema, IN_MEMORY), shape) == 0:
        raise compiler.names.error("records that take a byte at least", schema.decode("utf-8", "replace"))
    return compiler.finished()


class _Compiler:
    """Emits code. Each method returns the minimum of bytes of its value: a list of items that take none
    could be of any length in no space, and is refused.
    """

    def __init__(self, names: Names, columns: tuple[str, ...]) -> None:
        self.names = names
        self.rows = {name: number * interpreter.COLUMN_WIDTH for number, name in enumerate(columns)}
        self.code: list[int] = []
        self.tables: list[tuple[int, list[int]]] = []
        self.registers = 0
        self.depth = 0
        self.readers: dict[str, RecordReader] = {}

    def finished(self) -> Program:
        self.emit(interpreter.END)
        for at, table in self.tables:
            self.code[at + 2] = len(self.code)
            self.code += table
        return Program(np.array(self.code, np.int64), max(self.registers, 1), self.readers)

    def emit(self, op: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        if len(self.code) > _LONGEST:
            raise self.names.error("a record of fewer parts", f"more than {_LONGEST // interpreter.OP_WIDTH}")
        self.code += (op, a, b, c)
        return len(self.code) - interpreter.OP_WIDTH

    def register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def value(self, schema: Any, shape: Shape | None) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.names.error("types that nest less deep", "more")
        kind, schema = self.names.resolve(schema)
        if kind == "union":
            least = self.union(schema, shape)
        elif kind == "null":
            self.null(shape)
            least = 0
        elif isinstance(shape, Raw):
            least = self.raw(kind, schema, shape)
        elif kind == "record" and isinstance(shape, Fields | None):
            least = self.record(schema, shape)
        elif kind in ("array", "map") and isinstance(shape, Items | None):
            least = self.items(kind, schema, shape)
        else:
            least = self.leaf(kind, schema, shape)
        self.depth -= 1
        return least

    def leaf(self, kind: str, schema: Any, shape: Shape | None) -> int:
        match shape, kind:
            case None, "fixed":
                size = self.names.fixed_size(schema)
                self.emit(interpreter.SKIP_FIXED, size)
                return size
            case None, "boolean" | "float" | "double":
                self.emit(interpreter.SKIP_FIXED, _WIDTHS[kind])
                return _WIDTHS[kind]
            case None, _:
                self.emit(_SKIPS[kind])
            case Number(name, bits), "int" | "long":
                self.emit(interpreter.LONG, self.rows[name], bits)
            case Number(name), "boolean":
                self.emit(interpreter.BOOLEAN, self.rows[name])
            case Chars(name), "string" | "bytes":
                self.emit(interpreter.BYTES, self.rows[name])
            case Chars(name), "fixed":
                size = self.names.fixed_size(schema)
                self.emit(interpreter.FIXED, self.rows[name], size)
                return size
            case _:
                wanted = type(shape).__name__.lower() if isinstance(shape, Fields) else shape.name
                raise self.names.error(f"another type for {wanted}", kind)
        return 1

    def union(self, branches: list[Any], shape: Shape | None) -> int:
        at = self.emit(interpreter.UNION, len(branches))
        targets, jumps, least = [], [], []
        for branch in branches:
            targets.append(len(self.code))
            least.append(self.value(branch, shape))
            jumps.append(self.emit(interpreter.JUMP))
        for jump in jumps:
            self.code[jump + 1] = len(self.code)
        self.tables.append((at, targets))
        return 1 + min(least, default=0)

    def record(self, schema: dict[str, Any], shape: Fields | None) -> int:
        wanted = dict(shape.fields) if shape else {}
        least = 0
        with self.names.inside(schema) as fields:
            for field in fields:
                number = field.get("field-id")
                part = wanted.pop(number, None) if isinstance(number, int) else None
                least += self.value(field.get("type"), part)
        for number, part in wanted.items():
            self.null(part, f"the field {number}")
        return least

    def null(self, shape: Shape | None, absent: str = "") -> None:
        """Append nulls, or refuse to; what is required may not be *absent* from the schema at all."""
        match shape:
            case None:
                return
            case Fields(fields):
                for number, part in fields:
                    self.null(part, absent and f"the field {number}")
            case Raw() | Number(required=True) | Chars(required=True) | Items(required=True):
                if absent:
                    raise self.names.error(f"{absent}, {shape.name},", "none")
                self.emit(interpreter.REFUSE)
            case Number(name):
                self.emit(interpreter.NULL, self.rows[name], interpreter.OF_NUMBER)
            case Chars(name):
                self.emit(interpreter.NULL, self.rows[name], interpreter.OF_BYTES)
            case Items(name, item):
                self.emit(interpreter.NULL, self.rows[name], self.rows[columns_of(item)[0]])

    def raw(self, kind: str, schema: Any, shape: Raw) -> int:
        if kind != "record":
            raise self.names.error(f"a record for {shape.name}", kind)
        mark = self.register()
        self.emit(interpreter.MARK, mark)
        self.readers[shape.name] = record_reader(schema, self.names)
        least = self.record(schema, None)
        self.emit(interpreter.RAW, self.rows[shape.name], mark)
        return least

    def items(self, kind: str, schema: dict[str, Any], shape: Items | None) -> int:
        counter = self.register()
        opened = self.emit(interpreter.OPEN, counter)
        least = 0
        if kind == "map":
            least += self.value("string", None)
        least += self.value(schema.get("items" if kind == "array" else "values"), shape and shape.item)
        if least == 0 or (kind == "map" and shape):
            raise self.names.error("arrays of items that take a byte at least", kind)
        self.emit(interpreter.NEXT, counter, opened + interpreter.OP_WIDTH)
        self.code[opened + 2] = len(self.code)
        if shape:
            self.fuse(opened)
            self.emit(interpreter.LIST, self.rows[shape.name], self.rows[columns_of(shape.item)[0]])
        return 1

    def fuse(self, opened: int) -> None:
        """Make one instruction of a loop over numbers with numbers or bytes, as the maps of columns are."""
        body = self.code[opened + interpreter.OP_WIDTH : -interpreter.OP_WIDTH]
        if (
            len(body) == 2 * interpreter.OP_WIDTH
            and body[0] == interpreter.LONG
            and body[interpreter.OP_WIDTH] in _PAIRS
        ):
            key, bits, (op, value, value_bits) = (
                body[1],
                body[2],
                body[interpreter.OP_WIDTH : interpreter.OP_WIDTH + 3],
            )
            if op == interpreter.BYTES or value_bits == 64:
                del self.code[opened:]
                self.emit(_PAIRS[op], key, value, bits)
