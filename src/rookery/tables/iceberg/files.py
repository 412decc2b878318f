"""Manifests to Arrow: one row a live file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.io import FileIO

from rookery.io import shown
from rookery.model import FormatError, Place
from rookery.tables.files import FILE_SCHEMA
from rookery.tables.iceberg.avro.columns import Columns
from rookery.tables.iceberg.avro.container import open_container
from rookery.tables.iceberg.avro.program import Program
from rookery.tables.iceberg.avro.shape import Chars, Fields, Items, Number, Raw, pairs
from rookery.tables.iceberg.file_bytes import read_whole, readable
from rookery.tables.iceberg.manifest_list import Manifest

_MAPS = ("column_sizes", "value_counts", "null_counts", "nan_counts", "lower_bounds", "upper_bounds")
_DELETED = 2
_CONTENTS = 3
_BATCH = 1 << 29  # bytes of one column: two manifests together stay below the limit of Arrow's offsets

_NONE = FILE_SCHEMA.empty_table()

_FILE = Fields(
    (
        (134, Number("content", 8)),
        (100, Chars("path", required=True)),
        (101, Chars("format", required=True)),
        (102, Raw("partition")),
        (103, Number("rows", required=True)),
        (104, Number("size", required=True)),
        (108, pairs("column_sizes", 117, 118, Number)),
        (109, pairs("value_counts", 119, 120, Number)),
        (110, pairs("null_counts", 121, 122, Number)),
        (137, pairs("nan_counts", 138, 139, Number)),
        (125, pairs("lower_bounds", 126, 127, Chars)),
        (128, pairs("upper_bounds", 129, 130, Chars)),
        (132, Items("split_offsets", Number("split_offsets.item", required=True))),
        (135, Items("equality_ids", Number("equality_ids.item", 32, required=True))),
        (143, Chars("referenced_data_file")),
        (144, Number("content_offset")),
        (145, Number("content_size")),
    )
)
_ENTRY = Fields(
    (
        (0, Number("status", 8, required=True)),
        (1, Number("added_snapshot_id")),
        (3, Number("sequence_number")),
        (2, _FILE),
    )
)


def read_files(io: FileIO, manifests: Iterable[Manifest]) -> pa.Table:
    """Return the live files of *manifests*, both data and deletes."""
    batches: list[pa.RecordBatch] = []
    manifests = list(manifests)
    if not manifests:
        return _NONE
    reading = _Reading()
    for manifest in manifests:
        with readable(manifest.manifest_path):
            reading.add(manifest, read_whole(io, manifest.manifest_path))
        if reading.columns.most > _BATCH:
            batches.append(reading.batch())
            reading = _Reading()
    return pa.Table.from_batches([*batches, reading.batch()], FILE_SCHEMA)


class _Reading:
    """Manifests on their way to a batch."""

    def __init__(self) -> None:
        self.columns = Columns(_ENTRY, drop="status", drop_value=_DELETED)
        self._manifests: list[Manifest] = []
        self._counts: list[int] = []
        self._partitions: dict[str, int] = {}  # as JSON, with their numbers
        self._partition_of: list[NDArray[np.int64]] = []

    def add(self, manifest: Manifest, data: bytes) -> None:
        """Decode a manifest."""
        before = self.columns.count
        file = open_container(data, shown(manifest.manifest_path))
        program = self.columns.add(file)
        if self.columns.count > before:
            self._manifests.append(manifest)
            self._counts.append(self.columns.count - before)
            self._partition_of.append(self._number_partitions(program, before, file.place))

    def _number_partitions(self, program: Program, start: int, place: Place) -> NDArray[np.int64]:
        """Return the partition of each entry from *start*, decoding each partition once."""
        ends = self.columns.words("partition")
        first = int(ends[start - 1]) if start else 0
        offsets = np.concatenate(([first], ends[start:])) - first
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.columns.chars("partition")[first:])]
        raw = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers).dictionary_encode()
        reader = program.readers["partition"]
        texts = [reader.json(value, place) for value in raw.dictionary.to_pylist()]
        numbers = [self._partitions.setdefault(text, len(self._partitions)) for text in texts]
        codes: NDArray[np.int64] = np.array(numbers, np.int64)[raw.indices.to_numpy()]
        return codes

    def batch(self) -> pa.RecordBatch:
        """Return what has been decoded."""
        columns = self.columns
        arrays = {
            "path": self._text("path", required=True),
            "content": self._content(),
            "format": pc.utf8_lower(self._text("format", required=True)),
            "size": columns.numbers("size", pa.int64(), required=True),
            "rows": columns.numbers("rows", pa.int64(), required=True),
            "spec_id": pa.array(
                self._repeat([each.partition_spec_id for each in self._manifests]), pa.int32()
            ),
            "partition": self._partition(),
            "sequence_number": self._inherited(
                "sequence_number", [m.sequence_number for m in self._manifests]
            ),
            "added_snapshot_id": self._inherited(
                "added_snapshot_id", [m.added_snapshot_id or 0 for m in self._manifests]
            ),
            "referenced_data_file": self._text("referenced_data_file"),
            "content_offset": columns.numbers("content_offset", pa.int64()),
            "content_size": columns.numbers("content_size", pa.int64()),
            "equality_ids": columns.lists(
                "equality_ids",
                pa.list_(pa.int32()),
                columns.numbers("equality_ids.item", pa.int32(), required=True),
            ),
            "file_list": self._path_of_manifest(),
            "row_groups": self._row_groups(),
        }
        for name in _MAPS:
            arrays[name] = columns.maps(name, FILE_SCHEMA.field(name).type)
        return pa.RecordBatch.from_arrays([arrays[name] for name in FILE_SCHEMA.names], schema=FILE_SCHEMA)

    def _repeat(self, values: Sequence[int]) -> NDArray[np.int64]:
        """One value a manifest to one a file."""
        return np.repeat(np.array(values, np.int64), self._counts)

    def _path_of_manifest(self) -> pa.Array:
        paths = pa.array([manifest.manifest_path for manifest in self._manifests], pa.string())
        return paths.take(pa.array(self._repeat(range(len(paths)))))

    def _row_groups(self) -> pa.Array:
        offsets = self.columns.numbers("split_offsets.item", pa.int64(), required=True)
        counts = pc.list_value_length(self.columns.lists("split_offsets", pa.list_(pa.int64()), offsets))
        return pc.if_else(pc.equal(counts, 0), None, counts)

    def _partition(self) -> pa.Array:
        numbers = np.concatenate([np.empty(0, np.int64), *self._partition_of])
        return pa.array(list(self._partitions), pa.string()).take(pa.array(numbers))

    def _inherited(self, name: str, of_manifests: Sequence[int]) -> pa.Array:
        """What an entry lacks, it inherits from the manifest, whose commit added it."""
        own = self.columns.words(name)
        return pa.array(np.where(self.columns.valid(name), own, self._repeat(of_manifests)), pa.int64())

    def _content(self) -> pa.Array:
        """In the first version of the format, which has no deletes, a missing value means data."""
        content = np.where(self.columns.valid("content"), self.columns.words("content"), 0)
        wrong = np.flatnonzero((content < 0) | (content >= _CONTENTS))
        if len(wrong):
            raise FormatError(self._place(int(wrong[0])), "data or deletes", f"content {content[wrong[0]]}")
        return pa.array(content, pa.int8())

    def _text(self, name: str, *, required: bool = False) -> pa.Array:
        texts = self.columns.texts(name, pa.string(), required=required)
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            values = texts.view(pa.binary()).to_pylist()
            row = next(row for row, value in enumerate(values) if not _is_text(value))
            raise FormatError(self._place(row), f"text in the field {name}", repr(values[row])) from error
        return texts

    def _place(self, row: int) -> Place:
        """The manifest that lists a file."""
        number = int(np.searchsorted(np.cumsum(self._counts), row, side="right"))
        return Place(shown(self._manifests[number].manifest_path))


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
