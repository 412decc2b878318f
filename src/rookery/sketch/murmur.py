"""MurmurHash3 x64 128 as theta sketches use it: seed 9001, the first 64 bits, shifted right by one.

The kernels read whole words: a value's bytes are read eight at a time, at any alignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

SEED = np.uint64(9001)
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_A1 = np.uint64(0x52DCE729)
_A2 = np.uint64(0x38495AB5)
_FIVE = np.uint64(5)


def _loader(bits: int, result: Any) -> Any:
    """Make an intrinsic that loads *bits* bits from any byte of a uint8 array, aligned or not."""

    @intrinsic
    def load(typing_context: Any, array: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            value = builder.load(builder.bitcast(pointer, ir.IntType(bits).as_pointer()))
            value.align = 1
            return value

        return result(array, types.intp), generate

    return load


def _on_words(emit: Callable[[Any, Any], Any]) -> Any:
    """Make an intrinsic from word to word, which *emit* writes with a builder."""

    @intrinsic
    def apply(typing_context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.uint64(types.uint64), generate

    return apply


swap_bytes = _on_words(lambda builder, word: builder.bswap(word))
leading_zeros = _on_words(lambda builder, word: builder.ctlz(word, ir.Constant(ir.IntType(1), 0)))
load_u64 = _loader(64, types.uint64)
load_u32 = _loader(32, types.uint32)


def check_range(data: NDArray[np.uint8], start: int, length: int) -> None:
    """Refuse bytes that are not within *data*: compiled functions read any address."""
    if start < 0 or length < 0 or start + length > len(data):
        raise ValueError(f"{length} bytes from {start} are not within {len(data)}")


@njit(inline="always")
def _rotl(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(inline="always")
def _mix(x: np.uint64) -> np.uint64:
    x ^= x >> np.uint64(33)
    x *= _M1
    x ^= x >> np.uint64(33)
    x *= _M2
    return x ^ (x >> np.uint64(33))


@njit(inline="always")
def _finish(h1: np.uint64, h2: np.uint64, length: int) -> np.uint64:
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    return (_mix(h1) + _mix(h2)) >> np.uint64(1)


@njit(inline="always")
def hash_word(word: np.uint64, length: int) -> np.uint64:
    """Hash a value of at most eight bytes, which are in *word*, lowest first."""
    k1 = _rotl(word * _C1, 31) * _C2
    return _finish(SEED ^ k1, SEED, length)


@njit(inline="always")
def _tail(data: Any, end: int, count: int) -> Any:
    """The last *count* (1 to 8) bytes before *end* as a word."""
    if end >= 8:
        return load_u64(data, end - 8) >> np.uint64(64 - 8 * count)
    word = np.uint64(0)
    for i in range(count):
        word |= np.uint64(data[end - count + i]) << np.uint64(8 * i)
    return word


@njit(inline="always")
def hash_bytes(data: np.ndarray, start: int, length: int) -> np.uint64:
    """Hash *length* bytes of the uint8 array *data* from *start*."""
    h1 = SEED
    h2 = SEED
    end = start + length
    at = start
    while end - at >= 16:
        k1 = load_u64(data, at)
        k2 = load_u64(data, at + 8)
        h1 ^= _rotl(k1 * _C1, 31) * _C2
        h1 = (_rotl(h1, 27) + h2) * _FIVE + _A1
        h2 ^= _rotl(k2 * _C2, 33) * _C1
        h2 = (_rotl(h2, 31) + h1) * _FIVE + _A2
        at += 16
    rest = end - at
    if rest > 8:
        h2 ^= _rotl(_tail(data, end, rest - 8) * _C2, 33) * _C1
        h1 ^= _rotl(load_u64(data, at) * _C1, 31) * _C2
    elif rest > 0:
        h1 ^= _rotl(_tail(data, end, rest) * _C1, 31) * _C2
    return _finish(h1, h2, length)
