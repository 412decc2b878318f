"""Lengths of text and binary values: of each file of a segment, a table for each column.

They are blobs of a type of their own, which earlier versions pass over: those versions put tables of zone
maps one below the other, and fail if some of them have further columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from rookery.model import Place
from rookery.sidecar.checksums import DamagedError
from rookery.sketch.lengths import Lengths

LENGTHS_V1 = "rookery-lengths-v1"
LENGTHS_SCHEMA = pa.schema([(name, pa.int64()) for name in ("values", "bytes", "greatest")])
"""The values that are not null, their bytes, and the bytes of the longest; null where not known."""

_MOST = 1 << 62


def lengths_table(known: Mapping[int, Lengths], files: int) -> pa.Table:
    """Return a row for each of so many files, by the lengths of some of them."""
    missing = np.ones(files, bool)
    missing[list(known)] = False
    columns = []
    for name in LENGTHS_SCHEMA.names:
        numbers = np.zeros(files, np.int64)
        numbers[list(known)] = [min(getattr(lengths, name), _MOST) for lengths in known.values()]
        columns.append(pa.array(numbers, mask=missing))
    return pa.table(columns, schema=LENGTHS_SCHEMA)


def unknown_lengths(files: int) -> pa.Table:
    """Return the table of a column of which no lengths are known."""
    return lengths_table({}, files)


def checked_lengths(table: pa.Table, files: int, place: Place) -> pa.Table:
    """Return a table that was read; columns of later versions are left out."""
    types = {name: table.schema.field(name).type for name in table.column_names}
    if table.num_rows != files or any(types.get(field.name) != field.type for field in LENGTHS_SCHEMA):
        raise DamagedError(place, f"lengths in {files} files", f"{table.num_rows} rows of {types}")
    return table.select(LENGTHS_SCHEMA.names)
