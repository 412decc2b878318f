"""Text that is not UTF-8, which Spark stores in STRING columns as it is given."""

from __future__ import annotations

import pyarrow as pa


def decodable(array: pa.Array, errors: str = "backslashreplace") -> pa.Array:
    """Return the array with all text in UTF-8, as *errors* says; what is so already is returned as it is.

    >>> decodable(pa.array([b"\\xffa", b"ok"], pa.binary()).cast(pa.string(), safe=False)).to_pylist()
    ['\\\\xffa', 'ok']
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return _mended(array, errors)
    return array


def _mended(array: pa.Array, errors: str) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        raw = array.cast(pa.large_binary())
        return pa.array([None if one is None else one.decode(errors=errors) for one in raw.to_pylist()], kind)
    array = pa.concat_arrays([array, array[:0]])  # Arrow makes no lists with nulls of a slice of offsets
    mask = array.is_null()
    if pa.types.is_struct(kind):
        parts = [decodable(array.field(place), errors) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        parts = [decodable(part, errors) for part in (array.keys, array.items)]
        return pa.MapArray.from_arrays(array.offsets, *parts, type=kind, mask=mask)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = decodable(array.values, errors)
        return type(array).from_arrays(array.offsets, values, type=kind, mask=mask)
    return array
