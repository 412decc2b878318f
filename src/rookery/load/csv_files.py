"""CSV files: their types are found by reading them once, before anything is loaded."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from rookery.load.inputs import InputFile
from rookery.load.types import merged, stored_type
from rookery.model import UsageError

_BLOCK = 8 << 20  # bytes; types are first taken from one
_SAMPLE = 64 << 10
_DELIMITERS = ",;\t|"
_TABS = ("tsv", "tab")
_QUOTED = re.compile(r'"[^"]*"')
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", re.S)
_ROW = re.compile(r"Row #(\d+): (.*)", re.S)
_INVALID = re.compile(r"invalid value '(.*)'", re.S)


class CsvFile:
    """A file of separated values, whose first line names the columns."""

    def __init__(self, source: InputFile) -> None:
        self.source = source
        self.delimiter = "\t" if source.ending in _TABS else self._delimiter()

    def _delimiter(self) -> str:
        """The one of the usual delimiters that is most frequent in the first line, outside of quotes."""
        with self.source.open() as opened:
            first = _QUOTED.sub("", opened.read(_SAMPLE).decode(errors="replace")).partition("\n")[0]
        return max(_DELIMITERS, key=first.count)

    def examine(self, given: pa.Schema | None) -> pa.Schema:
        """Return its columns, after all rows were read; *given* are types that are known.

        Types are those of the first rows, made wider where later values need it.
        """
        types = {} if given is None else {field.name: _parsed_as(field.type) for field in given}
        while True:
            schema: pa.Schema | None = None
            try:
                with self._open(types, threads=True) as reader:
                    schema = reader.schema
                    if not self._are_texts(schema, types):
                        continue
                    for _ in reader:
                        pass
                return schema
            except pa.ArrowInvalid as error:
                if schema is None or not self._widen(types, schema, str(error), given):
                    raise self._located(error, types) from error

    def _are_texts(self, schema: pa.Schema, types: dict[str, pa.DataType]) -> bool:
        """Make columns texts that pyarrow takes for bytes as they are not UTF-8: then that is an error."""
        of_bytes = [
            field.name for field in schema if pa.types.is_binary(field.type) and field.name not in types
        ]
        types.update(dict.fromkeys(of_bytes, pa.string()))
        return not of_bytes

    def _widen(
        self, types: dict[str, pa.DataType], schema: pa.Schema, message: str, given: pa.Schema | None
    ) -> bool:
        """Make the type of a column wider, for a value that the first rows do not have the like of."""
        conversion, value = _CONVERSION.search(message), _INVALID.search(message)
        if conversion is None or value is None:
            return False
        column = schema.field(int(conversion[1]))
        if given is not None and column.name in given.names:
            return False
        wider = _wider(column.type, value[1])
        if wider is None or wider == column.type:
            return False
        types[column.name] = wider
        return True

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield its rows."""
        types = {field.name: _parsed_as(field.type) for field in columns}
        try:
            with self._open(types, threads=True) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            raise self._located(error, types) from error

    def _open(self, types: dict[str, pa.DataType], *, threads: bool) -> pacsv.CSVStreamingReader:
        return pacsv.open_csv(
            self.source.open(),
            read_options=pacsv.ReadOptions(block_size=_BLOCK, use_threads=threads),
            parse_options=pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types=types),
        )

    def _located(self, error: pa.ArrowInvalid, types: dict[str, pa.DataType]) -> UsageError:
        """Return the error for a row, with its line: found by reading again, row by row."""
        message = str(error)
        try:
            with self._open(types, threads=False) as reader:
                for _ in reader:
                    pass
        except pa.ArrowInvalid as again:
            message = str(again)
        row, reason = None, message
        if (conversion := _CONVERSION.search(message)) is not None:
            number, row, reason = int(conversion[1]), conversion[2], conversion[3]
            reason = f"column {self._header()[number]}: {reason}"
        elif (parsing := _ROW.search(message)) is not None:
            row, reason = parsing[1], parsing[2]
        place = self.source.shown if row is None else f"{self.source.shown}, line {self._line(int(row)):,}"
        return UsageError(
            f"{place}: {' '.join(reason.split())}", hint="correct the row, or remove it; nothing was loaded"
        )

    def _header(self) -> list[str]:
        with self._records() as reader:
            return next(filter(None, reader))

    @contextmanager
    def _records(self) -> Iterator[Any]:
        """A reader of Python's, which counts lines; pyarrow counts rows."""
        with self.source.open() as opened:
            text = io.TextIOWrapper(io.BufferedReader(opened), errors="replace", newline="")
            yield csv.reader(text, delimiter=self.delimiter)

    def _line(self, row: int) -> int:
        """Return the line at which a row begins; rows are counted from 1, with the header."""
        with self._records() as reader:
            seen, begins = 0, 1
            for fields in reader:
                if fields:  # empty lines are no rows
                    seen += 1
                    if seen == row:
                        return begins
                begins = reader.line_num + 1
        return begins


def _parsed_as(kind: pa.DataType) -> pa.DataType:
    """Return the type that pyarrow parses, for one that is stored."""
    return pa.string() if pa.types.is_nested(kind) or kind == pa.uuid() else kind


def _wider(kind: pa.DataType, value: str) -> pa.DataType | None:
    """Return the type for values of *kind* and a value that is none; None if it is bad.

    >>> _wider(pa.int64(), "1.5"), _wider(pa.null(), "x"), _wider(pa.int64(), "x")
    (DataType(double), DataType(string), None)
    """
    try:
        alone = pacsv.read_csv(
            pa.BufferReader(f"c\n{value}\n".encode()),
            parse_options=pacsv.ParseOptions(delimiter="\x1f", quote_char=False),
        ).schema.types[0]
    except pa.ArrowInvalid:
        return None
    if pa.types.is_null(kind):
        return alone
    if pa.types.is_date(kind) and pa.types.is_timestamp(alone) and alone.tz is None:
        return alone
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(alone) and kind.tz == alone.tz:
        return alone
    if pa.types.is_integer(kind) and pa.types.is_floating(alone) and "." in value:
        return merged(stored_type(kind, "c"), stored_type(alone, "c"))
    return None
