"""The interpreter, compiled. Imported by name for large files only, as it imports numba."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload, register_jitable

from rookery.tables.iceberg.avro import interpreter
from rookery.tables.iceberg.avro.interpreter import SPARE

_WORDS = types.int64[::1]
_BYTES = types.uint8[::1]
_READ_ONLY = types.Array(types.uint8, 1, "C", readonly=True)
_SIGNATURE = types.int64(_WORDS, _READ_ONLY, _WORDS, _WORDS, _WORDS, _BYTES, _BYTES, _WORDS, _WORDS)


@intrinsic
def _copy_word(context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
    """Copy eight bytes between uint8 arrays, from and to any byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(number: int) -> Any:
            view = context.make_array(signature.args[number])(context, builder, arguments[number])
            at = builder.gep(view.data, [arguments[number + 1]])
            return builder.bitcast(at, ir.IntType(64).as_pointer())

        word = builder.load(pointer(2))
        word.align = 1
        builder.store(word, pointer(0)).align = 1
        return context.get_dummy_value()

    return types.none(target, types.intp, source, types.intp), generate


@overload(interpreter.copy)
def _copy(chars: Any, to: Any, data: Any, start: Any, length: Any) -> Any:
    """Copy whole words, as columns have spare bytes; at the end, only the bytes that are left."""

    def copy(chars: Any, to: Any, data: Any, start: Any, length: Any) -> None:
        if start + length + SPARE <= len(data):
            for i in range(0, length, SPARE):
                _copy_word(chars, to + i, data, start + i)  # type: ignore[call-arg]
        else:
            for i in range(length):
                chars[to + i] = data[start + i]

    return copy


for _helper in (
    interpreter.varint,
    interpreter.sized,
    interpreter.items,
    interpreter.room,
    interpreter.put,
    interpreter.put_bytes,
    interpreter.pairs_of_longs,
    interpreter.pairs_of_bytes,
    interpreter.skip,
    interpreter.take_number,
    interpreter.take_bytes,
    interpreter.take,
    interpreter.record,
):
    register_jitable(_helper)

run = njit(_SIGNATURE, cache=True, nogil=True)(interpreter.run)
