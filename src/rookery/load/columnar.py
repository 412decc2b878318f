"""Parquet, ORC and Arrow files: they state their columns, and pyarrow reads them in batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.dataset as ds

from rookery.load.inputs import Format, InputFile

_ROWS = 64 << 10  # in a batch
_READ_AHEAD = 2  # batches


class ColumnarFile:
    """A file that states the types of its columns."""

    def __init__(self, source: InputFile) -> None:
        self.source = source

    def examine(self, given: pa.Schema | None) -> pa.Schema:
        """Return its columns."""
        return self._dataset().schema

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield its rows."""
        yield from self._dataset().to_batches(
            batch_size=_ROWS, batch_readahead=_READ_AHEAD, fragment_readahead=1
        )

    def _dataset(self) -> ds.Dataset:
        kind: ds.FileFormat | str = self.source.format.value
        if self.source.format is Format.PARQUET:
            # Spark has written times in 96 bits, which nanoseconds do not cover.
            kind = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
        return ds.dataset(self.source.path, filesystem=self.source.files, format=kind)
