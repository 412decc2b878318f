"""Parts of nested Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.parquet import Leaf


def read_leaves(file: pq.ParquetFile, row_group: int, leaves: Sequence[Leaf]) -> list[pa.ChunkedArray]:
    """Read leaves of a row group, each within its top-level column, in the order of the file.

    By number, as by name pyarrow does not distinguish the top-level columns `a.b` and `a.b.c`.
    """
    numbers = [leaf.index for leaf in leaves]
    return file.reader.read_row_group(row_group, column_indices=numbers).columns  # type: ignore[no-any-return]


def map_entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of all maps of an array, one after the other."""
    array = array.drop_null()
    if not len(array):
        return array.keys.slice(0, 0), array.items.slice(0, 0)
    first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first)


def row_values(array: pa.ChunkedArray, path: Sequence[str]) -> pa.Array:
    """Walk down structs to a leaf, a value a row: null where a struct above it is."""
    child = array.combine_chunks()
    for name in path:
        place = child.type.get_field_index(name)
        child = child.flatten()[place if place >= 0 else 0]
    return child


def leaf_array(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """Walk down *path* (names of fields, `element`, `key`, `value`) to a leaf, without its nesting.

    Where only one leaf was read, a struct has only one child, of any name.
    """
    for name in path:
        if pa.types.is_struct(array.type):
            present = array.drop_null()
            array = present.field(name if array.type.get_field_index(name) >= 0 else 0)
        elif pa.types.is_map(array.type):
            keys, values = map_entries(array)
            array = keys if name == "key" else values
        else:
            array = array.flatten()
            if name in ("key", "value") and pa.types.is_struct(array.type):
                array = array.field(name if array.type.get_field_index(name) >= 0 else 0)
    return array
