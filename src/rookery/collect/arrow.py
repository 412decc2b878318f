"""Nested Arrow arrays, taken apart."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.parquet import Leaf


def read_leaves(file: pq.ParquetFile, row_group: int, leaves: Sequence[Leaf]) -> list[pa.ChunkedArray]:
    """Read leaves of a row group, each within its top-level column, in the order of the file.

    By their numbers: by name, pyarrow takes `a.b` for the top-level columns `a.b` and `a.b.c` alike.
    """
    numbers = [leaf.index for leaf in leaves]
    return file.reader.read_row_group(row_group, column_indices=numbers).columns  # type: ignore[no-any-return]


def map_entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of all maps of an array, one behind the other."""
    array = array.drop_null()
    if not len(array):
        return array.keys.slice(0, 0), array.items.slice(0, 0)
    first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first)


def row_values(array: pa.ChunkedArray, path: Sequence[str]) -> pa.Array:
    """Walk down structs to a leaf, a value a row: null where a struct above it is."""
    found = array.combine_chunks()
    for name in path:
        place = found.type.get_field_index(name)
        found = found.flatten()[place if place >= 0 else 0]
    return found


def leaf_array(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """Walk down *path* (names of fields, `element`, `key`, `value`) to a leaf, all nesting taken off.

    Where only one leaf was read, a struct has but one child, whatever its name.
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
