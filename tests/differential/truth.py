"""What is true: all rows of a snapshot, read once with no filter, and predicates evaluated on that copy.

Nothing is pushed down to Iceberg, whose own pruning loses rows: with NaN, -0.0, UUIDs, and text not in UTF-8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tests.differential.predicates import Asked
from tests.differential.sessions import Session
from tests.differential.world import Find

_FILE, _ROW, _TRUE = "__file", "__row", "__true"
_UUID = re.compile(r"UUID\(('[^']*')\)")
_ONLY_NULLS = re.compile(r"\{(?:'[^']*': None(?:, )?)+\}")


@dataclass
class Copy:
    """The rows of a table or of a snapshot of it, where they lie, and a view of them in another session."""

    spark: SparkSession
    view: str
    schema: StructType
    data: pa.Table
    files: NDArray[np.object_]
    # Where a struct's field is partitioned by identity, Iceberg's readers put the partition's value into the
    # struct, which is null no more if it was. Rookery returns what the file holds, as the specification says.
    null_structs: bool = False
    _numbered: str = field(init=False)

    @classmethod
    def of(cls, spark: SparkSession, source: str, view: str, *, null_structs: bool = False) -> Copy:
        frame = spark.sql(f"SELECT *, _file AS {_FILE} FROM {source}")
        table = frame.toArrow()
        files = np.array([path_of(each) for each in table.column(_FILE).to_pylist()], object)
        schema = StructType(frame.schema.fields[:-1])
        return cls(spark, view, schema, table.drop_columns([_FILE]), files, null_structs)

    def __post_init__(self) -> None:
        self.expose()
        numbered = self.data.append_column(_ROW, pa.array(range(self.data.num_rows), pa.int64()))
        schema = StructType([*self.schema.fields, StructField(_ROW, LongType())])
        self._numbered = f"numbered_{self.view}"
        frame = self.spark.createDataFrame(numbered, schema)
        frame.createOrReplaceTempView(self._numbered)

    def expose(self) -> None:
        """Make the views of the rows, also where another has taken the name."""
        frame = self.spark.createDataFrame(self.data, self.schema)
        frame.createOrReplaceTempView(self.view)
        frame.createOrReplaceGlobalTempView(self.view)

    def drop(self) -> None:
        """Forget the views."""
        for name in (self.view, self._numbered):
            self.spark.catalog.dropTempView(name)
        self.spark.catalog.dropGlobalTempView(self.view)

    @property
    def names(self) -> list[str]:
        return list(self.data.column_names)

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        return self.rows_of(self.data)

    def rows_of(self, table: pa.Table) -> list[tuple[Any, ...]]:
        """Rows that can be counted, and compared with those of the copy."""
        rows = rows_of(table)
        return [tuple(map(_null_struct, row)) for row in rows] if self.null_structs else rows

    def matching(self, mask: NDArray[np.bool_]) -> Counter[tuple[Any, ...]]:
        """The rows that a mask leaves."""
        return Counter(self.rows[row] for row in np.flatnonzero(mask))

    def unpushable(self) -> set[tuple[str, ...]]:
        """The leaves that hold NaN, -0.0 or odd text, of which Iceberg's own pruning loses rows."""
        return {names for column in self.data.column_names for names in _odd((column,), self.data[column])}

    def answer(self, asked: Sequence[Asked], session: Session) -> Truth:
        """One job for all predicates; those that Spark refuses, found by halving, are left out."""
        with session.applied(self.spark):
            kept = _accepted(asked, lambda some: self._frame(some) is not None)
            try:
                matrix = self._matrix(kept)
            except PySparkException:
                kept = _accepted(kept, lambda some: self._matrix(some) is not None)
                matrix = self._matrix(kept)
        return Truth(kept, matrix)

    def _frame(self, asked: Sequence[Asked]) -> Any:
        listed = ", ".join(f"coalesce(({each.sql}), false)" for each in asked)
        return self.spark.sql(f"SELECT {_ROW}, array({listed}) AS {_TRUE} FROM {self._numbered}")

    def _matrix(self, asked: Sequence[Asked]) -> NDArray[np.bool_]:
        """Which predicates, a column each, are true of which rows."""
        if not asked:
            return np.zeros((self.data.num_rows, 0), bool)
        table = self._frame(asked).toArrow().sort_by(_ROW)
        flat = table.column(_TRUE).combine_chunks().flatten()
        return np.asarray(flat.to_numpy(zero_copy_only=False), bool).reshape(-1, len(asked))


@dataclass(frozen=True)
class Truth:
    """The predicates that Spark takes, and which rows each is true of."""

    asked: list[Asked]
    matrix: NDArray[np.bool_]


def _accepted(asked: Sequence[Asked], attempt: Callable[[Sequence[Asked]], bool]) -> list[Asked]:
    """The predicates that an attempt succeeds with, found by halving."""
    try:
        attempt(asked)
    except PySparkException:
        if len(asked) == 1:
            return []
        middle = len(asked) // 2
        return [*_accepted(asked[:middle], attempt), *_accepted(asked[middle:], attempt)]
    return list(asked)


def _odd(names: tuple[str, ...], column: Any) -> set[tuple[str, ...]]:
    if pa.types.is_struct(column.type):
        inside = [(each.name, pc.struct_field(column, place)) for place, each in enumerate(column.type)]
        return {found for name, child in inside for found in _odd((*names, name), child)}
    if pa.types.is_string(column.type):
        return set() if _is_utf8(column) else {names}
    if not pa.types.is_floating(column.type):
        return set()
    signs = pc.and_(pc.equal(column, 0.0), pc.less(pc.divide(1.0, column.cast(pa.float64())), 0.0))
    return {names} if pc.any(pc.or_(pc.is_nan(column), signs)).as_py() else set()


def _is_utf8(column: Any) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that can be counted: what equals itself does, NaN too, and -0.0 is not 0.0; UUIDs are text."""
    columns = [list(map(_shown, _plain(column).to_pylist())) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _shown(value: Any) -> str:
    return _UUID.sub(r"b\1", repr(value))


def _null_struct(text: str) -> str:
    return "None" if _ONLY_NULLS.fullmatch(text) else text


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _lossless(column.type)
    return column if kind == column.type else column.cast(kind)


def _lossless(kind: pa.DataType) -> pa.DataType:
    """Numbers for times, as Python's have too short a calendar and more than one zone; bytes for texts."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _lossless(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_lossless(kind.key_type), _lossless(kind.item_type))
    return pa.list_(_lossless(kind.value_type)) if pa.types.is_list(kind) else kind


def path_of(text: str) -> str:
    """A file's path, however it is written."""
    return text.removeprefix("file:").replace("//", "/")


def difference(expected: Counter[Any], found: Counter[Any]) -> str:
    """What differs, in words; nothing if they are the same."""
    if expected == found:
        return ""
    lost, more = expected - found, found - expected
    return (
        f"{lost.total()} rows lost, such as {next(iter(lost), None)}; "
        f"{more.total()} too many, such as {next(iter(more), None)}"
    )


def same(
    expected: Counter[Any],
    found: Counter[Any],
    told: str,
    names: Sequence[str],
    found_names: Sequence[str] | None = None,
) -> None:
    """Raise `Find` if the rows, or the columns' names, are not the expected ones."""
    if found_names is not None and list(found_names) != list(names):
        raise Find(f"{told}: columns {found_names}, and Spark has {names}")
    if differs := difference(expected, found):
        raise Find(f"{told}: {differs}; columns {names}")


def short(error: Exception) -> str:
    """The first lines of an error, without Java's traces."""
    lines = [line for line in str(error).splitlines() if not line.startswith("\tat ")]
    return f"{type(error).__name__}: " + "\n".join(lines[:6])
