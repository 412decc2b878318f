"""Whether rows fit a table that they are added to: by the names and types of the columns."""

from __future__ import annotations

import pyarrow as pa

from rookery.load.rows import InputRows
from rookery.load.types import merged, stored_type
from rookery.model import UsageError


def check_columns(rows: InputRows, table: str, columns: pa.Schema) -> tuple[str, ...]:
    """Raise an error that names the first column that differs; return the columns that will be null."""
    for field in rows.columns:
        if field.name not in columns.names:
            raise UsageError(
                f"{table} has no column '{field.name}'", hint=f"its columns are {', '.join(columns.names)}"
            )
        if field.name not in rows.without_values:
            _check_type(field, columns.field(field.name).type, table)
    missing = [field for field in columns if field.name not in rows.columns.names]
    required = next((field.name for field in missing if not field.nullable), None)
    if required is not None:
        raise UsageError(
            f"the files have no column '{required}', which {table} requires",
            hint="add the column to the files",
        )
    return tuple(field.name for field in missing)


def _check_type(field: pa.Field, kind: pa.DataType, table: str) -> None:
    wanted = stored_type(kind, field.name)
    if merged(wanted, field.type) != wanted:
        raise UsageError(
            f"column {field.name} is {field.type} in the files, and {kind} in {table}",
            hint="convert the column in the files, or load them into a new table",
        )
