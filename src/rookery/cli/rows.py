"""Rows on standard output: for people, or as JSON, JSON lines, CSV, Arrow or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rookery.cli.cells import values_of
from rookery.cli.console import out, visible
from rookery.cli.options import Options, Output
from rookery.cli.sheets import FittedTable, table
from rookery.model import UsageError

ROW_FORMATS = (Output.JSONL, Output.CSV, Output.ARROW, Output.PARQUET)
_AT_A_TIME = 10_000  # rows that are printed from one batch
_TO_QUOTE = frozenset(',"\r\n')


def check_output(options: Options) -> None:
    """Refuse binary formats on a terminal, before any rows are read."""
    if options.output in (Output.ARROW, Output.PARQUET) and sys.stdout.isatty():
        raise UsageError(
            f"{options.output.value} is not for a terminal", hint="send it to a file, or into a pipe"
        )


def show_rows(rows: pa.RecordBatchReader, options: Options) -> None:
    """Print rows in the format of the options: JSON lines and CSV while they are read, others as a whole."""
    match options.output:
        case Output.TEXT:
            out().print(_table(rows.read_all()))
        case Output.JSON:
            names = rows.schema.names
            listed = [dict(zip(names, row, strict=True)) for row in _rows(rows.read_all(), json=True)]
            sys.stdout.write(msgspec.json.encode(listed).decode() + "\n")
        case Output.JSONL:
            _write_jsonl(rows)
        case Output.CSV:
            _write_csv(rows)
        case _:
            _write(rows.read_all(), options.output)


def _write_jsonl(rows: pa.RecordBatchReader) -> None:
    """Print each row as a JSON object on a line of its own."""
    names = rows.schema.names
    for batch in _batches(rows):
        lines = (msgspec.json.encode(dict(zip(names, row, strict=True))) for row in _rows(batch, json=True))
        sys.stdout.write(b"".join(line + b"\n" for line in lines).decode())


def _write_csv(rows: pa.RecordBatchReader) -> None:
    """Print a header and rows, quoted as in RFC 4180; a line ends with a newline alone.

    Values are those of JSON, nested ones as JSON text. Null is empty, and empty text is `""`.
    """
    show = visible if sys.stdout.isatty() else str  # values must not control a terminal
    names = rows.schema.names
    sys.stdout.write(",".join(_quoted(show(name)) for name in names) + "\n")
    # Readers skip empty lines, so where there is one column, a null is quoted too.
    null = '""' if len(names) == 1 else ""
    for batch in _batches(rows):
        lines = (
            ",".join(null if value is None else _quoted(show(_csv_text(value))) for value in row)
            for row in _rows(batch, json=True)
        )
        sys.stdout.write("".join(line + "\n" for line in lines))


def _csv_text(value: object) -> str:
    if isinstance(value, str):
        return value
    text = msgspec.json.encode(value).decode()
    return text[1:-1] if text.startswith('"') else text  # of decimals, bytes and the like, without quotes


def _quoted(text: str) -> str:
    if text and _TO_QUOTE.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _batches(rows: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the rows in parts of a size that is printed at once."""
    for batch in rows:
        for start in range(0, batch.num_rows, _AT_A_TIME):
            yield pa.Table.from_batches([batch.slice(start, _AT_A_TIME)])


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
