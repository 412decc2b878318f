"""Manifest lists: the manifests of a snapshot, with their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO

from rookery.io import shown
from rookery.model import FormatError
from rookery.tables.files import FieldSummary
from rookery.tables.iceberg.avro.columns import Columns
from rookery.tables.iceberg.avro.container import open_container
from rookery.tables.iceberg.avro.shape import Chars, Fields, Items, Number
from rookery.tables.iceberg.file_bytes import read_whole, readable


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as its list describes it. The first version of the format may leave counts out."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int  # 0 data, 1 deletes
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int | None
    added_files_count: int | None
    existing_files_count: int | None
    deleted_files_count: int | None
    added_rows_count: int | None
    existing_rows_count: int | None
    deleted_rows_count: int | None
    partitions: tuple[FieldSummary, ...]  # in the order of the spec, or none

    @property
    def path(self) -> str:
        """Its name."""
        return self.manifest_path

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not deletes."""
        return self.content == 0

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.manifest_length

    @property
    def spec_id(self) -> int:
        """How its files are partitioned."""
        return self.partition_spec_id

    @property
    def live_files(self) -> int | None:
        """How many files it adds and keeps, if stated."""
        if self.added_files_count is None or self.existing_files_count is None:
            return None
        return self.added_files_count + self.existing_files_count

    @property
    def identity(self) -> str:
        """Its identity.

        Its files inherit sequence number and snapshot from it, and one manifest may be committed twice.
        """
        return f"{self.manifest_path}#{self.manifest_length}#{self.sequence_number}#{self.added_snapshot_id}"


_SUMMARY = Fields(
    (
        (509, Number("contains_null", required=True)),
        (518, Number("contains_nan")),
        (510, Chars("lower")),
        (511, Chars("upper")),
    )
)
_MANIFEST = Fields(
    (
        (500, Chars("manifest_path", required=True)),
        (501, Number("manifest_length", required=True)),
        (502, Number("partition_spec_id", 32, required=True)),
        (517, Number("content")),
        (515, Number("sequence_number")),
        (516, Number("min_sequence_number")),
        (503, Number("added_snapshot_id")),
        (504, Number("added_files_count")),
        (505, Number("existing_files_count")),
        (506, Number("deleted_files_count")),
        (512, Number("added_rows_count")),
        (513, Number("existing_rows_count")),
        (514, Number("deleted_rows_count")),
        (507, Items("partitions", _SUMMARY)),
    )
)
_NUMBERS = tuple(shape.name for _, shape in _MANIFEST.fields if isinstance(shape, Number))
_REQUIRED = frozenset(
    shape.name for _, shape in _MANIFEST.fields if isinstance(shape, Number) and shape.required
)
_ZERO_WHERE_ABSENT = frozenset({"content", "sequence_number", "min_sequence_number"})


def read_manifest_list(io: FileIO, location: str) -> list[Manifest]:
    """Return the manifests of a manifest list, in its order."""
    with readable(location):
        file = open_container(read_whole(io, location), shown(location))
        columns = Columns(_MANIFEST)
        columns.add(file)
        try:
            paths = [path.decode() for path in _texts(columns, "manifest_path")]
        except UnicodeDecodeError as error:
            raise FormatError(file.place, "text in the paths of manifests", str(error)) from error
        numbers = [_numbers(columns, name) for name in _NUMBERS]
        rows = zip(paths, *numbers, _summaries(columns), strict=True)
        return [Manifest(*row) for row in rows]


def _numbers(columns: Columns, name: str) -> list[Any]:
    values: list[Any] = columns.words(name).tolist()
    if name in _REQUIRED:
        return values
    absent = 0 if name in _ZERO_WHERE_ABSENT else None
    valid = columns.valid(name).tolist()
    return [value if known else absent for value, known in zip(values, valid, strict=True)]


def _texts(columns: Columns, name: str) -> list[Any]:
    return columns.texts(name, pa.binary(), required=name == "manifest_path").to_pylist()  # type: ignore[no-any-return]


def _summaries(columns: Columns) -> Sequence[tuple[FieldSummary, ...]]:
    has_null = [value != 0 for value in columns.words("contains_null").tolist()]
    has_nan = [None if value is None else value != 0 for value in _numbers(columns, "contains_nan")]
    bounds = _texts(columns, "lower"), _texts(columns, "upper")
    fields = [FieldSummary(*row) for row in zip(has_null, has_nan, *bounds, strict=True)]
    ends = columns.words("partitions").tolist()
    return [tuple(fields[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
