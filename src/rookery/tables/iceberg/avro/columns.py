"""Columns that grow while records are decoded into them, and become Arrow arrays at the end."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import FormatError
from rookery.tables.iceberg.avro import interpreter
from rookery.tables.iceberg.avro.container import Block, Container
from rookery.tables.iceberg.avro.interpreter import (
    AT,
    BASE,
    CHAR_BASE,
    CHAR_COUNT,
    CHAR_ROOM,
    COLUMN_WIDTH,
    COUNT,
    DROP,
    DROP_VALUE,
    LEFT,
    NEED,
    NEED_CHARS,
    NEED_WORDS,
    ROOM,
    SPARE,
    STATE_WIDTH,
)
from rookery.tables.iceberg.avro.program import Program, compile_program
from rookery.tables.iceberg.avro.shape import Fields, columns_of

_FIRST_WORDS, _FIRST_CHARS = 128, 2048
_KERNEL = "rookery.tables.iceberg.avro.kernel"
_WORTH_NUMBA = 1 << 18  # bytes that plain Python decodes in about the time of importing numba
_interpreted = [0]  # bytes that plain Python has decoded in this process: many small files are worth it, too
_MOST = (1 << 31) - 1  # Arrow's offsets have 32 bits
_FURTHEST = 4096.0

_WRONG = {
    interpreter.BAD_NUMBER: "a number that ends inside the block and fits 64 bits",
    interpreter.BAD_LENGTH: "a value that ends inside the block",
    interpreter.BAD_BRANCH: "a branch that its union has",
    interpreter.BAD_COUNT: "no more items than bytes",
    interpreter.BAD_NULL: "a value in a field that is required",
    interpreter.BAD_RANGE: "a number that fits its field",
    interpreter.BAD_BOOLEAN: "true or false",
}


class Columns:
    """The columns of a shape. A record whose column *drop* is *drop_value* is not kept."""

    def __init__(self, shape: Fields, drop: str | None = None, drop_value: int = 0) -> None:
        self.shape = shape
        self.names = columns_of(shape)
        self._rows = {name: number * COLUMN_WIDTH for number, name in enumerate(self.names)}
        self._state = np.zeros(STATE_WIDTH, np.int64)
        self._state[DROP] = -1 if drop is None else self._rows[drop]
        self._state[DROP_VALUE] = drop_value
        self.clear()

    def clear(self) -> None:
        """Clear all columns."""
        self._columns = np.zeros((len(self.names), COLUMN_WIDTH), np.int64)
        self._words = np.empty(0, np.int64)
        self._valid = np.empty(0, np.uint8)
        self._chars = np.empty(0, np.uint8)
        rooms = np.full(len(self.names), _FIRST_WORDS), np.full(len(self.names), _FIRST_CHARS)
        self._lay_out(*rooms)

    @property
    def count(self) -> int:
        """How many records are kept."""
        return int(self._columns[0, COUNT])

    @property
    def most(self) -> int:
        """The largest number of bytes, or of items, in any column."""
        return int(self._columns[:, (COUNT, CHAR_COUNT)].max())

    def add(self, file: Container) -> Program:
        """Decode all records of a file; return the program that did."""
        program = compile_program(file.schema, self.shape, file.place)
        before, start = self._used(), file.start
        for block in file.blocks():
            begin = start - file.start
            self._state[AT], self._state[LEFT] = 0, block.count
            while not self._decode(program, block):
                done = begin + (block.end - start) * int(self._state[AT]) / len(block.data)
                self._grow(before, (len(file.data) - file.start) / max(done, 1.0))
            start = block.end
        return program

    def _decode(self, program: Program, block: Block) -> bool:
        """Decode the rest of a block; false where a column must grow first."""
        size = len(block.data)
        compiled = _KERNEL in sys.modules or _interpreted[0] + size > _WORTH_NUMBA
        if not compiled:
            _interpreted[0] += size
        result = (self._run_compiled if compiled else self._run)(program, block.data)
        at = int(self._state[AT])
        if result == interpreter.FULL:
            return False
        if result:
            actual = f"none in the record at byte {at} of the block's content"
            raise FormatError(block.place, _WRONG[result], actual)
        if at != size:
            raise FormatError(block.place, f"{block.count} records", f"{size - at} bytes more")
        if self.most > _MOST:
            raise FormatError(block.place, f"at most {_MOST} bytes of any field in a file", str(self.most))
        return True

    def _run_compiled(self, program: Program, data: bytes) -> int:
        from rookery.tables.iceberg.avro.kernel import run  # brings numba, which small files do without

        columns = self._columns.reshape(-1)
        registers = np.zeros(program.registers, np.int64)
        arenas = self._words, self._valid, self._chars
        source = np.frombuffer(data, np.uint8)
        return int(run(program.code, source, registers, self._state, *arenas, columns, columns.copy()))

    def _run(self, program: Program, data: bytes) -> int:
        code, registers, columns = program.code.tolist(), [0] * program.registers, self._columns.reshape(-1)
        state, flat = self._state.tolist(), columns.tolist()
        arenas = (
            self._words.data,
            self._valid.data,
            self._chars.data,
        )  # views, quicker than arrays by the item
        result: int = interpreter.run(code, data, registers, state, *arenas, flat, list(flat))
        self._state[:] = state
        columns[:] = flat
        return result

    def _used(self) -> NDArray[np.float64]:
        return self._columns[:, (COUNT, CHAR_COUNT)].astype(np.float64)

    def _grow(self, before: NDArray[np.float64], ahead: float) -> None:
        """Grow columns that are full, or soon will be, assuming that the rest of the file is like its start.

        Each word takes at least a byte of the file, so this allocates no more than the file may contain.
        """
        needed = self._used()
        number = int(self._state[NEED]) // COLUMN_WIDTH
        needed[number] = np.maximum(needed[number], self._state[[NEED_WORDS, NEED_CHARS]])
        ahead = min(ahead, _FURTHEST)
        expected = np.maximum(before + (needed - before) * ahead * 1.1, needed * 1.5)
        room = self._columns[:, (ROOM, CHAR_ROOM)]
        wanted = np.where(expected > room, expected, room).astype(np.int64)
        self._lay_out(wanted[:, 0], wanted[:, 1])

    def _lay_out(self, words: NDArray[np.int64], chars: NDArray[np.int64]) -> None:
        """Move all columns to new arenas, of the given sizes."""
        old = self._columns.copy()
        new = self._columns
        new[:, ROOM], new[:, CHAR_ROOM] = words, chars
        spans = chars + SPARE
        new[:, BASE], new[:, CHAR_BASE] = np.cumsum(words) - words, np.cumsum(spans) - spans
        before: tuple[NDArray[Any], ...] = (self._words, self._valid, self._chars)
        self._words, self._valid = np.empty(int(words.sum()), np.int64), np.empty(int(words.sum()), np.uint8)
        self._chars = np.empty(int(spans.sum()), np.uint8)
        after: tuple[NDArray[Any], ...] = (self._words, self._valid, self._chars)
        kinds = (BASE, COUNT), (BASE, COUNT), (CHAR_BASE, CHAR_COUNT)
        for source, target, (base, count) in zip(before, after, kinds, strict=True):
            for was, now in zip(old.tolist(), new.tolist(), strict=True):
                target[now[base] : now[base] + now[count]] = source[was[base] : was[base] + was[count]]

    def words(self, name: str) -> NDArray[np.int64]:
        """Return the numbers of a column, or the ends of its texts or lists."""
        base, _, count, *_ = self._columns[self._rows[name] // COLUMN_WIDTH].tolist()
        return self._words[base : base + count]

    def valid(self, name: str) -> NDArray[np.bool_]:
        """Return which values of a column are not null; only for columns that are not required."""
        base, _, count, *_ = self._columns[self._rows[name] // COLUMN_WIDTH].tolist()
        return self._valid[base : base + count].view(np.bool_)

    def chars(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of a column, one value after the other."""
        *_, base, _, count = self._columns[self._rows[name] // COLUMN_WIDTH].tolist()
        return self._chars[base : base + count]

    def numbers(self, name: str, kind: pa.DataType, *, required: bool = False) -> pa.Array:
        """Return a column of numbers in Arrow."""
        # A copy, as arenas are larger than their content.
        values = self.words(name).astype(kind.to_pandas_dtype())
        mask = None if required else self._bitmap(name)
        return pa.Array.from_buffers(kind, len(values), [mask, pa.py_buffer(values)])

    def texts(self, name: str, kind: pa.DataType, *, required: bool = False) -> pa.Array:
        """Return a column of strings or bytes in Arrow."""
        mask = None if required else self._bitmap(name)
        buffers = [mask, self._offsets(name), pa.py_buffer(self.chars(name).copy())]
        return pa.Array.from_buffers(kind, len(self.words(name)), buffers)

    def lists(self, name: str, kind: pa.DataType, item: pa.Array) -> pa.Array:
        """Return a column of lists in Arrow, or of maps, whose *item* is a struct."""
        buffers = [self._bitmap(name), self._offsets(name)]
        return pa.Array.from_buffers(kind, len(self.words(name)), buffers, children=[item])

    def maps(self, name: str, kind: Any) -> pa.Array:
        """Return a column of maps in Arrow, from the columns of its keys and values."""
        keys = self.numbers(f"{name}.key", kind.key_type, required=True)
        values = self.numbers if pa.types.is_integer(kind.item_type) else self.texts
        parts = [keys, values(f"{name}.value", kind.item_type, required=True)]
        entries = pa.struct([kind.key_field, kind.item_field])
        return self.lists(name, kind, pa.Array.from_buffers(entries, len(keys), [None], children=parts))

    def _bitmap(self, name: str) -> pa.Buffer:
        return pa.py_buffer(np.packbits(self.valid(name), bitorder="little"))

    def _offsets(self, name: str) -> pa.Buffer:
        ends = self.words(name)
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends
        return pa.py_buffer(offsets)
