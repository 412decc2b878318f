"""JSON Lines: one object a line. Types are found by reading a file once, before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from rookery.load.inputs import InputFile
from rookery.load.types import merged, stored_schema, without_nulls
from rookery.model import UsageError

_CHUNK = 8 << 20  # bytes that are parsed together
_MOST_LEVELS = 40  # of a value: an array is two levels of a Parquet file, of which pyarrow reads 100
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_OPENING, _CLOSING = list(b"[{"), list(b"]}")


@dataclass(frozen=True, slots=True)
class _Lines:
    """Whole lines of a file."""

    text: bytes
    first: int  # the number of the first line, from 1

    def line(self, row: int) -> int:
        """Return the number of the line of a row, from 0; empty lines are no rows."""
        numbers = (at for at, line in enumerate(self.text.splitlines()) if line.strip())
        return self.first + next(islice(numbers, row, None))


class JsonLinesFile:
    """A file with one JSON object a line."""

    def __init__(self, source: InputFile) -> None:
        self.source = source

    def examine(self, given: pa.Schema | None) -> pa.Schema:
        """Return its columns, after all lines were read; *given* are types that are known."""
        columns: dict[str, pa.DataType] = {}
        for lines in self._lines():
            self._check(lines)
            known = _parsed_schema(given) if given is not None else None
            table = self._parsed(lines, known, "infer")
            if any(_has_times(kind) for kind in table.schema.types):
                table = self._with_times(lines, table.schema)
            if given is not None:
                table = self._in_types(lines, table, given)
            for field in stored_schema(table.schema, self.source.shown):
                kind = _widest(columns.get(field.name, field.type), field.type)
                if kind is None:
                    raise self._mixed(lines, field.name, columns[field.name])
                columns[field.name] = kind
        return pa.schema(list(columns.items()))

    def _check(self, lines: _Lines) -> None:
        """Refuse what pyarrow lets pass, or what ends the process in which it parses."""
        try:
            lines.text.decode()
        except UnicodeDecodeError as error:
            number = lines.text.count(b"\n", 0, error.start)
            raise self._bad_line(lines.first + number, "the text is not UTF-8") from error
        deep = _first_too_deep(lines.text)
        if deep is not None:
            reason = f"objects and arrays are nested in more than {_MOST_LEVELS} levels"
            raise self._bad_line(lines.first + deep, reason)

    def _in_types(self, lines: _Lines, table: pa.Table, given: pa.Schema) -> pa.Table:
        """Return lines with texts as the dates and times that the given types ask for."""
        for number, field in enumerate(table.schema):
            if field.name in given.names and pa.types.is_temporal(given.field(field.name).type):
                kind, column = given.field(field.name).type, table.column(number)
                try:
                    table = table.set_column(number, pa.field(field.name, kind), column.cast(kind))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    row = _first_that_fails(column, kind)
                    raise self._bad_line(lines.line(row), f"column {field.name}: {error}") from error
        return table

    def _with_times(self, lines: _Lines, schema: pa.Schema) -> pa.Table:
        """Return lines with times as they are written: pyarrow ignores whether they have a time zone."""
        as_texts = pa.schema([field.with_type(_as_texts(field.type)) for field in schema])
        table = self._parsed(lines, as_texts, "infer")
        for number, field in enumerate(schema):
            if pa.types.is_timestamp(field.type):
                kind = _time_type(table.column(number))
                table = table.set_column(number, pa.field(field.name, kind), table.column(number).cast(kind))
        return table

    def _mixed(self, lines: _Lines, name: str, kind: pa.DataType) -> UsageError:
        """Return the error for the first value of another type than those of earlier lines."""
        schema = _parsed_schema(pa.schema([(name, kind)]))
        try:
            self._parsed(lines, schema, "ignore")
        except UsageError as error:
            return error
        return UsageError(f"{self.source.shown}: column {name} has values of several types, not only {kind}")

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield its rows."""
        schema = _parsed_schema(columns)
        for lines in self._lines():
            yield from self._parsed(lines, schema, "error").to_batches()

    def _lines(self) -> Iterator[_Lines]:
        number = 1
        with self.source.open() as opened:
            rest = b""
            while chunk := opened.read(_CHUNK):
                whole, newline, rest_of_chunk = chunk.rpartition(b"\n")
                if not newline:
                    rest += chunk
                    continue
                text, rest = rest + whole + newline, rest_of_chunk
                if text.strip():
                    yield _Lines(text, number)
                number += text.count(b"\n")
            if rest.strip():
                yield _Lines(rest, number)

    def _parsed(self, lines: _Lines, schema: pa.Schema | None, unexpected: str) -> pa.Table:
        def parse(text: bytes) -> pa.Table:
            return pajson.read_json(
                pa.BufferReader(text),
                read_options=pajson.ReadOptions(block_size=len(text) + 1),
                parse_options=pajson.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior=unexpected
                ),
            )

        try:
            return parse(lines.text)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            number, reason = _first_bad(lines.text, parse, error)
            raise self._bad_line(lines.first + number, reason) from error

    def _bad_line(self, number: int, reason: str) -> UsageError:
        if number == 1 and self._is_array():
            return UsageError(
                f"{self.source.shown} is one JSON array; a file must have one object a line",
                hint="`jq -c '.[]' FILE > FILE.jsonl` writes that",
            )
        reason = " ".join(reason.removeprefix("JSON parse error: ").split())
        return UsageError(
            f"{self.source.shown}, line {number:,}: {reason}",
            hint="correct the line, or remove it; nothing was loaded",
        )

    def _is_array(self) -> bool:
        with self.source.open() as opened:
            return bool(opened.read(1024).lstrip()[:1] == b"[")


def _first_too_deep(text: bytes) -> int | None:
    """Return the first line, from 0, whose values are nested too deeply.

    >>> _first_too_deep(b'{"a": "[["}\\n' + b"[" * 99), _first_too_deep(b'{"a": "' + b"[" * 99 + b'"}')
    (1, None)
    """
    data = np.frombuffer(text, np.uint8)
    opened = np.flatnonzero((data == ord("[")) | (data == ord("{")))
    ends = np.append(np.flatnonzero(data == ord("\n")), len(data))
    before = np.searchsorted(opened, ends)
    for number in np.flatnonzero(np.diff(before, prepend=0) > _MOST_LEVELS).tolist():
        start = int(ends[number - 1]) + 1 if number else 0
        marks = np.frombuffer(_TEXT.sub(b"", text[start : int(ends[number])]), np.uint8)
        levels = np.isin(marks, _OPENING).astype(np.int64) - np.isin(marks, _CLOSING)
        if levels.cumsum().max(initial=0) > _MOST_LEVELS:
            return number
    return None


def _first_bad(text: bytes, parse: Callable[[bytes], pa.Table], error: Exception) -> tuple[int, str]:
    """Return the first line, from 0, with which parsing fails, and why; by bisection."""
    lines = text.splitlines(keepends=True)
    good, bad, reason = 0, len(lines), str(error)  # so many lines are parsed, and so many are not
    while bad - good > 1:
        middle = (good + bad) // 2
        beginning = b"".join(lines[:middle])
        try:
            if beginning.strip():
                parse(beginning)
            good = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as found:
            bad, reason = middle, str(found)
    return bad - 1, reason


def _first_that_fails(column: pa.ChunkedArray, kind: pa.DataType) -> int:
    """Return the first row whose value cannot be cast; by bisection."""
    good, bad = 0, len(column)  # so many rows can be cast, and so many cannot
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            column.slice(0, middle).cast(kind)
            good = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            bad = middle
    return bad - 1


def _widest(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type of both; texts of which only some are times of one kind are texts."""
    text = pa.large_string()
    kinds = [text if pa.types.is_timestamp(kind) else kind for kind in (first, second)]
    return text if first != second and kinds == [text, text] else merged(first, second)


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


def _as_texts(kind: pa.DataType) -> pa.DataType:
    """Return a type with texts in place of times."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_as_texts(part.type)) for part in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_texts(kind.value_type)))
    return kind


def _time_type(texts: pa.ChunkedArray) -> pa.DataType:
    """Return the type of texts that are times: with a time zone, without, or texts if some have one."""
    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?(\d\d)?)$", ignore_case=True)
    dated = pc.match_substring_regex(texts, r"^\d+-\d+-\d+$")  # whose last part is no time zone
    kinds = set(pc.and_not(zoned, dated).unique().drop_null().to_pylist())
    if len(kinds) != 1:
        return pa.string()
    return pa.timestamp("us", tz="UTC" if kinds == {True} else None)


def _parsed_schema(columns: pa.Schema) -> pa.Schema:
    """Return the types that pyarrow parses JSON to, for those that are stored and that it can parse."""
    return pa.schema(
        [
            field.with_type(_parsed_type(without_nulls(field.type)))
            for field in columns
            if _is_parsed(field.type)
        ]
    )


def _is_parsed(kind: pa.DataType) -> bool:
    """Whether pyarrow parses JSON to a type; the others can only be those of columns that a file lacks."""
    if pa.types.is_struct(kind) or pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return all(_is_parsed(kind.field(number).type) for number in range(kind.num_fields))
    others = (pa.types.is_map, pa.types.is_fixed_size_binary, pa.types.is_time)
    return kind != pa.uuid() and not any(check(kind) for check in others)


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_parsed_type(part.type)) for part in kind])
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_parsed_type(kind.value_type)))
    # Times are parsed by a cast, which minds time zones.
    if pa.types.is_large_string(kind) or pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return kind
