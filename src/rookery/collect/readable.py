"""What Spark can read of a table: it refuses tables with columns of some types."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.collect.column_sets import is_column_set
from rookery.model import Field, Snapshot, counted
from rookery.model.text import REPLACEMENT_IN_JSON
from rookery.model.type_names import SKETCHED, base_type, member_ids
from rookery.tables import Table

_NOT_IN_SPARK = frozenset({"time", "timestamp_ns", "timestamptz_ns"})
SPARK_READS = SKETCHED - _NOT_IN_SPARK
_SPARK_KNOWS = SPARK_READS | {"variant", "unknown"}


def refused(table: Table, snapshot: Snapshot | None = None) -> str | None:
    """Return why Spark refuses to read a table; None if it does not."""
    fields = table.fields(snapshot)
    unknown = next((field for field in fields if base_type(field.type) not in _SPARK_KNOWS), None)
    if unknown is not None:
        return f"Spark cannot read '{unknown.name}', a column of type {unknown.type}"
    return table.not_loadable


def unreadable(table: Table, snapshot: Snapshot) -> frozenset[int]:
    """Return the ids of the leaf columns that must be excluded so that Spark reads a table.

    A list or map is read as a whole: where Spark cannot read one leaf of it, it reads none.
    """
    fields = table.fields(snapshot)
    if refused(table, snapshot) is None:
        return frozenset()
    if table.not_loadable:
        return frozenset(field.id for field in fields)
    alone = [field for field in fields if base_type(field.type) not in SPARK_READS]
    repeated = {field.parts[0] for field in fields if field.repeated}
    whole = {field.parts[0] for field in alone} & repeated
    return frozenset(field.id for field in fields if field in alone or field.parts[0] in whole)


def readable_only(table: Table, snapshot: Snapshot) -> list[int] | None:
    """Return the ids of the leaf columns that Spark can read, or None if it can read all."""
    skipped = unreadable(table, snapshot)
    return [field.id for field in table.fields(snapshot) if field.id not in skipped] if skipped else None


def why_not_sketched(table: Table, field: Field) -> str:
    """Return why a column has no statistics, and how its type affects those of others."""
    why = f"columns of type {field.type} are not analyzed"
    if table.not_loadable is None:
        return why
    return f"{why}; {table.not_loadable}, so nothing is registered for other engines"


def needs_engine(files: pa.Table) -> NDArray[np.bool_]:
    """Return for each file whether only Iceberg's own reader can read it.

    By its format, by its deletes, or by a partition whose text may not be that of the file.
    """
    with_deletes = _mask(pc.not_equal(files["deletes"].fill_null(""), ""))
    return ~_has_format(files, "parquet") | with_deletes | has_other_text(files)


def has_other_text(files: pa.Table) -> NDArray[np.bool_]:
    """Return for each file whether its rows may have other text in Iceberg than the file has."""
    return _mask(pc.match_substring(files["partition"], REPLACEMENT_IN_JSON))


def skipped_files(files: pa.Table, field: Field, skipped: Set[int]) -> NDArray[np.bool_]:
    """Return in which files a column cannot be read, where Spark cannot read the columns *skipped*.

    Parquet is read here, ORC by Spark without such columns. Of an Avro file that has them it reads nothing.
    """
    if not skipped:
        return np.zeros(files.num_rows, bool)
    avro, orc = _has_format(files, "avro"), _has_format(files, "orc")
    return avro | orc if _is_among(field, skipped) else avro


def why_skipped(table: Table, field: Field, files: int, skipped: Set[int]) -> str:
    """Return why a column is not covered in all files."""
    count = f"{counted(files, 'file')} not covered"
    if why := table.not_loadable:
        return f"Spark cannot read ORC and Avro files of this table, as {why}; {count}"
    if _is_among(field, skipped):
        return f"Spark cannot read this column of type {field.type} from ORC and Avro; {count}"
    return f"Spark cannot read Avro files of a table with a column of a type that it does not know; {count}"


def _is_among(field: Field, ids: Set[int]) -> bool:
    """Whether a column, or a member of a column set, is among *ids*."""
    return not ids.isdisjoint(member_ids(field.type)) if is_column_set(field) else field.id in ids


def _has_format(files: pa.Table, name: str) -> NDArray[np.bool_]:
    return _mask(pc.equal(files["format"], name))


def _mask(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), bool)
