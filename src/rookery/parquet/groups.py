"""Whole row groups through pyarrow, for columns that have lists or maps in them."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, proxy

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.io import Source, SourceFile
from rookery.model import Place
from rookery.parquet.structure import damaged

_files: WeakKeyDictionary[Source, pq.ParquetFile] = WeakKeyDictionary()


def read_row_group(source: Source, row_group: int, columns: Sequence[str]) -> pa.Table:
    """Read top-level *columns* of a row group; the footer is parsed once per source."""
    with damaged(Place(source.name), f"row group {row_group}"):
        file = _files.get(source)
        if file is None:
            # The file must not keep its source alive, or the two would keep each other alive.
            opened = pa.PythonFile(SourceFile(proxy(source)), mode="r")
            # Reads the chunks of a row group together, and holds their bytes until the next one is read.
            file = _files[source] = pq.ParquetFile(opened, pre_buffer=True)
        return file.read_row_group(row_group, columns=list(columns), use_threads=False)
