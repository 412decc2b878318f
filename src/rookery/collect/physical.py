"""Which physical column of a Parquet file holds a field; all readers decide it here.

By field id, as Iceberg does. A file that has no ids (an import) is matched by the names in the table's name
mapping, which changes with the schema: such files are left to Iceberg's own reader. So are files that lack a
column with an initial default, or whose value is in the partition. Any other column that a file lacks is
null throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

from rookery.collect.column_sets import is_column_set
from rookery.model import Field
from rookery.model.type_names import member_ids
from rookery.parquet import Leaf


class NeedsEngineError(Exception):
    """The file can be understood only by Iceberg's own reader."""


class PhysicalColumns:
    """The leaves of one file by field id; a file without field ids raises `NeedsEngineError`."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._by_id = {leaf.field_id: leaf for leaf in leaves if leaf.field_id is not None}
        if not self._by_id and leaves:
            raise NeedsEngineError("the file has no field ids")

    @property
    def highest_id(self) -> int:
        """The highest field id; columns with a higher one are not in the file."""
        return max(self._by_id, default=0)

    def leaf(self, column: Field) -> Leaf | None:
        """Return the leaf that holds a column, None if the column is null throughout."""
        return self._leaf(column.id, filled=column.filled)

    def members(self, column: Field) -> tuple[Leaf, ...] | None:
        """Return the leaves of a column or of a column set; None if one is null throughout."""
        ids = member_ids(column.type) if is_column_set(column) else (column.id,)
        leaves = [self._leaf(number, filled=column.filled) for number in ids]
        return None if None in leaves else tuple(leaf for leaf in leaves if leaf is not None)

    def _leaf(self, field_id: int, *, filled: bool) -> Leaf | None:
        leaf = self._by_id.get(field_id)
        if leaf is None and filled:
            raise NeedsEngineError(
                "a column that the file lacks has a default value, or one in the partition"
            )
        return leaf
