"""The files of a snapshot as Arrow columns, one row per file, for any table format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2  # a deletion vector is a position delete in Puffin

PATH_FIELD, POSITION_FIELD = 2147483546, 2147483545  # reserved ids, of the columns of position delete files
_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("content", pa.int8()),
        ("format", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),  # JSON list of values in the order of the spec
        ("sequence_number", pa.int64()),
        ("added_snapshot_id", pa.int64()),
        ("column_sizes", _COUNTS),  # these by column id
        ("value_counts", _COUNTS),
        ("null_counts", _COUNTS),
        ("nan_counts", _COUNTS),
        ("lower_bounds", _BOUNDS),  # as Iceberg's single-value bytes
        ("upper_bounds", _BOUNDS),
        ("referenced_data_file", pa.string()),
        ("content_offset", pa.int64()),
        ("content_size", pa.int64()),
        ("equality_ids", pa.list_(pa.int32())),
        ("file_list", pa.string()),  # the path of the list that names it
        ("row_groups", pa.int32()),  # null if the writer does not state where they begin
    ]
)

IDENTITY = (
    "path",
    "format",
    "size",
    "rows",
    "spec_id",
    "partition",
    "sequence_number",
    "added_snapshot_id",
)
"""The columns that together make a file the same file. Its path alone does not: names are used again, and
the same file committed again has another data sequence number, so other deletes apply to it."""

SEPARATOR = pa.scalar("\0", pa.large_string())


def identities(files: pa.Table) -> pa.Array:
    """Return the identity of each file, without its deletes, as one string per file."""
    columns = [files[name].cast(pa.large_string()) for name in IDENTITY]
    joined = pc.binary_join_element_wise(*columns, SEPARATOR, null_handling="replace", null_replacement="")
    return joined.combine_chunks()


def single_target(row: Mapping[str, Any]) -> str | None:
    """Return the one data file that a delete file is of: it names it, or its bounds of paths do."""
    if row["referenced_data_file"] or row["content"] != POSITION_DELETES:
        return row["referenced_data_file"]  # type: ignore[no-any-return]
    lower = dict(row["lower_bounds"] or ()).get(PATH_FIELD)
    upper = dict(row["upper_bounds"] or ()).get(PATH_FIELD)
    return lower.decode() if lower is not None and lower == upper else None


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The summary of a partition field in all files of a list; bounds are single values as bytes."""

    contains_null: bool
    contains_nan: bool | None
    lower: bytes | None
    upper: bytes | None


class FileList(Protocol):
    """Some of a snapshot's files, listed together: in Iceberg a manifest.

    A list of the same identity names the same live files, in any snapshot.
    """

    @property
    def path(self) -> str:
        """Its name; unique among the lists of a snapshot."""

    @property
    def identity(self) -> str:
        """Its identity."""

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not deletes."""

    @property
    def live_files(self) -> int | None:
        """How many live files it lists, if that is known without reading it."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def spec_id(self) -> int:
        """How its files are partitioned."""

    @property
    def partitions(self) -> Sequence[FieldSummary]:
        """The summaries of the partition fields, in their order, or none."""
