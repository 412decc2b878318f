"""Rows on standard output: for people, or as JSON, Arrow or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rookery.cli.cells import values_of
from rookery.cli.console import out
from rookery.cli.options import Options, Output
from rookery.cli.sheets import FittedTable, table
from rookery.model import UsageError


def check_output(options: Options) -> None:
    """Refuse formats that rows cannot be printed in, before any are read."""
    if options.output is Output.PROMETHEUS:
        raise UsageError("rows cannot be printed as prometheus", hint="`rookery status` prints that")
    if options.output in (Output.ARROW, Output.PARQUET) and sys.stdout.isatty():
        raise UsageError(
            f"{options.output.value} is not for a terminal", hint="send it to a file, or into a pipe"
        )


def show_rows(rows: pa.Table, options: Options) -> None:
    """Print rows in the format of the options."""
    if options.output is Output.TEXT:
        out().print(_table(rows))
    elif options.output is Output.JSON:
        names = rows.schema.names
        listed = [dict(zip(names, row, strict=True)) for row in _rows(rows, json=True)]
        sys.stdout.write(msgspec.json.encode(listed).decode() + "\n")
    else:
        _write(rows, options.output)


def _write(rows: pa.Table, output: Output) -> None:
    sink = pa.PythonFile(sys.stdout.buffer, mode="w")
    if output is Output.PARQUET:
        pq.write_table(rows, sink)
    else:
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    sys.stdout.buffer.flush()


def _rows(rows: pa.Table, *, json: bool) -> Iterator[tuple[object, ...]]:
    columns = [values_of(column.combine_chunks(), json=json) for column in rows.columns]
    return zip(*columns, strict=True)


def _table(rows: pa.Table) -> FittedTable:
    kinds = rows.schema.types
    numbers = [at for at, kind in enumerate(kinds) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    cells = [[_text(value) for value in row] for row in _rows(rows, json=False)]
    return table(rows.schema.names, cells, numbers)


def _text(value: object) -> str:
    if value is None:
        return "null"
    return value.hex() if isinstance(value, bytes) else str(value)
