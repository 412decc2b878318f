"""Arrays of structs, lists and maps, with the arrays inside them replaced."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def with_leaves(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return an array with each leaf inside it replaced by what *change* returns; nulls stay.

    >>> rows = pa.array([{"a": [1, 2]}, None, {"a": None}])
    >>> with_leaves(rows, lambda leaf: leaf.cast(pa.string())).to_pylist()
    [{'a': ['1', '2']}, None, {'a': None}]
    """
    kind = array.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (pa.types.is_struct(kind) or pa.types.is_map(kind) or is_list):
        return change(array)
    array = pa.concat_arrays([array, array[:0]])  # Arrow makes no lists with nulls of a slice of offsets
    mask = array.is_null()
    if pa.types.is_struct(kind):
        parts = [with_leaves(array.field(place), change) for place in range(kind.num_fields)]
        fields = [kind.field(place).with_type(part.type) for place, part in enumerate(parts)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_map(kind):
        keys, items = (with_leaves(part, change) for part in (array.keys, array.items))
        key, item = kind.key_field.with_type(keys.type), kind.item_field.with_type(items.type)
        changed = pa.map_(key, item, kind.keys_sorted)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=changed, mask=mask)
    values = with_leaves(array.values, change)
    made = pa.list_ if pa.types.is_list(kind) else pa.large_list
    changed = made(kind.value_field.with_type(values.type))
    return type(array).from_arrays(array.offsets, values, type=changed, mask=mask)
