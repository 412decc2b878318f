"""What Spark can read of a table: it refuses those that have a column of some types."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.collect.column_sets import is_group, member_ids
from rookery.model import Field
from rookery.model.text import REPLACEMENT_IN_JSON
from rookery.model.type_names import SKETCHED, base_type

_NOT_IN_SPARK = frozenset({"time", "timestamp_ns", "timestamptz_ns"})
SPARK_READS = SKETCHED - _NOT_IN_SPARK


def refused(fields: Sequence[Field]) -> str | None:
    """Say why Spark refuses a table with these columns; None if it does not."""
    found = next((field for field in fields if base_type(field.type) in _NOT_IN_SPARK), None)
    return None if found is None else f"Spark cannot read '{found.name}', a column of type {found.type}"


def unreadable(fields: Sequence[Field]) -> frozenset[int]:
    """Return the ids of the leaf columns that must be left out so that Spark reads a table.

    A list or map is read as a whole: where Spark cannot read one leaf of it, it reads none.
    """
    if refused(fields) is None:
        return frozenset()
    alone = [field for field in fields if base_type(field.type) not in SPARK_READS]
    repeated = {field.parts[0] for field in fields if field.repeated}
    whole = {field.parts[0] for field in alone} & repeated
    return frozenset(field.id for field in fields if field in alone or field.parts[0] in whole)


def readable_only(fields: Sequence[Field]) -> list[int] | None:
    """Return the ids of the leaf columns that Spark can read, or None if it can read all."""
    skipped = unreadable(fields)
    return [field.id for field in fields if field.id not in skipped] if skipped else None


def needs_engine(files: pa.Table) -> NDArray[np.bool_]:
    """Say of each file whether only Iceberg's own reader understands it.

    By its format, by its deletes, or by a partition whose text may not be that of the file.
    """
    with_deletes = _mask(pc.not_equal(files["deletes"].fill_null(""), ""))
    return ~_has_format(files, "parquet") | with_deletes | has_other_text(files)


def has_other_text(files: pa.Table) -> NDArray[np.bool_]:
    """Say of each file whether its rows may have other text in Iceberg than the file has."""
    return _mask(pc.match_substring(files["partition"], REPLACEMENT_IN_JSON))


def skipped_files(files: pa.Table, field: Field, skipped: Set[int]) -> NDArray[np.bool_]:
    """Say in which files a column cannot be read, where Spark cannot read the columns *skipped*.

    Parquet is read here, ORC by Spark without such columns. Of an Avro file that has them it reads nothing.
    """
    if not skipped:
        return np.zeros(files.num_rows, bool)
    avro, orc = _has_format(files, "avro"), _has_format(files, "orc")
    return avro | orc if _is_among(field, skipped) else avro


def why_skipped(field: Field, files: int, skipped: Set[int]) -> str:
    """Say why a column is not covered in all files."""
    count = f"{files:,} file{'s' if files > 1 else ''} not covered"
    if _is_among(field, skipped):
        return f"Spark cannot read this column of type {field.type} from ORC and Avro; {count}"
    return f"Spark cannot read Avro files of a table with a column of a type that it does not know; {count}"


def _is_among(field: Field, ids: Set[int]) -> bool:
    """Whether a column, or a member of a group of columns, is among *ids*."""
    return not ids.isdisjoint(member_ids(field.type)) if is_group(field) else field.id in ids


def _has_format(files: pa.Table, name: str) -> NDArray[np.bool_]:
    return _mask(pc.equal(files["format"], name))


def _mask(found: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False), bool)
