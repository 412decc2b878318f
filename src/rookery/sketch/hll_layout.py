"""The bytes of an HLL sketch of Apache DataSketches, checked before the library reads them.

The library does not check some of them: a count of coupons that exceeds their array, or exceptions for
registers that have none, make it write outside of its memory. Here every count is checked against the bytes,
and the library always gets the compact form.
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rookery.model import FormatError, Place

FAMILY = 7
VERSION = 1
MIN_LG_K, MAX_LG_K = 4, 21
MAX_VALUE = 63  # of a register: the leading zeros of 64 bits, and one

_PREAMBLE = struct.Struct("<BBBBBBBB")
_SET_COUNT = struct.Struct("<I")
_ESTIMATORS = struct.Struct("<dddII")
SIZE_OFFSET = 0
VERSION_OFFSET = 1
FAMILY_OFFSET = 2
LG_K_OFFSET = 3
FLAGS_OFFSET = 5
LEAST_OFFSET = 6
MODE_OFFSET = 7
BODY_OFFSET = 8  # the coupons of a list, the count of a set, the estimators of registers
SET_COUPONS_OFFSET = 12
REGISTERS_OFFSET = 40

_INT = 4
_LIST_CAPACITY = 8  # one that is full turns into a set
_LG_MIN_SET_K = 8
_SLOT_BITS = 26
_EXCEPTION = 15  # the register's value follows the registers
_NEARLY = 1e-9


class Mode(IntEnum):
    """How values are stored: few as coupons, in a list or a set, and many as registers."""

    LIST = 0
    SET = 1
    HLL = 2


class HllKind(IntEnum):
    """How wide registers are, or will be."""

    HLL_4 = 0
    HLL_6 = 1
    HLL_8 = 2


class HllFlag(IntFlag):
    """The preamble's flags."""

    BIG_ENDIAN = 1
    EMPTY = 4
    COMPACT = 8
    OUT_OF_ORDER = 16


_PREAMBLE_INTS = {Mode.LIST: 2, Mode.SET: 3, Mode.HLL: 10}


class HllError(FormatError):
    """The payload is not an HLL sketch."""


class Preamble(NamedTuple):
    """The first eight bytes; `least` is a list's number of coupons, or the least value of registers."""

    ints: int
    version: int
    family: int
    lg_k: int
    lg_array: int
    flags: int
    least: int
    mode_byte: int

    @property
    def mode(self) -> Mode:
        """How values are stored."""
        return Mode(self.mode_byte & 3)

    @property
    def kind(self) -> HllKind:
        """How wide registers are."""
        return HllKind(self.mode_byte >> 2)

    @property
    def registers(self) -> int:
        """How many registers there are, or will be."""
        return 1 << self.lg_k


def read_preamble(payload: bytes, place: Place) -> Preamble:
    """Read and check the first eight bytes."""
    if len(payload) < _PREAMBLE.size:
        raise HllError(place, f"an HLL sketch of at least {_PREAMBLE.size} bytes", str(len(payload)))
    preamble = Preamble._make(_PREAMBLE.unpack_from(payload))
    if preamble.family != FAMILY:
        raise HllError(place.at(FAMILY_OFFSET), f"family {FAMILY}, an HLL sketch", str(preamble.family))
    if preamble.version != VERSION:
        raise HllError(place.at(VERSION_OFFSET), f"serial version {VERSION}", str(preamble.version))
    if preamble.flags & HllFlag.BIG_ENDIAN:
        raise HllError(place.at(FLAGS_OFFSET), "little-endian bytes", "the big-endian flag")
    if preamble.mode_byte & 3 > max(Mode) or preamble.mode_byte >> 2 > max(HllKind):
        raise HllError(place.at(MODE_OFFSET), "a mode and a kind of HLL", f"{preamble.mode_byte:#04x}")
    if preamble.ints != _PREAMBLE_INTS[preamble.mode]:
        expected = f"a preamble of {_PREAMBLE_INTS[preamble.mode]} ints in mode {preamble.mode.name}"
        raise HllError(place.at(SIZE_OFFSET), expected, str(preamble.ints))
    least = _LG_MIN_SET_K if preamble.mode is Mode.SET else MIN_LG_K
    if not least <= preamble.lg_k <= MAX_LG_K:
        raise HllError(place.at(LG_K_OFFSET), f"lg k from {least} to {MAX_LG_K}", str(preamble.lg_k))
    return preamble


def compact_form(payload: bytes, place: Place) -> bytes:
    """Return the same sketch in compact form, coupons and exceptions in ascending order, if it is one."""
    preamble = read_preamble(payload, place)
    if preamble.mode is Mode.HLL:
        registers, exceptions = read_registers(payload, place)
        _check_estimators(payload, preamble, registers, place)
        is_empty = not registers.any()
        end = REGISTERS_OFFSET + _register_bytes(preamble)
        body = payload[BODY_OFFSET:end] + exceptions.tobytes()
    else:
        coupons = _read_coupons(payload, preamble, place)
        is_empty = not len(coupons)
        count = _SET_COUNT.pack(len(coupons)) if preamble.mode is Mode.SET else b""
        body = count + coupons.tobytes()
    if preamble.flags & HllFlag.EMPTY and not is_empty:
        raise HllError(place.at(FLAGS_OFFSET), "an empty sketch, as its flag states", "values")
    flags = preamble.flags & HllFlag.OUT_OF_ORDER | HllFlag.COMPACT | (HllFlag.EMPTY if is_empty else 0)
    return _PREAMBLE.pack(*preamble._replace(flags=int(flags))) + body


def _read_coupons(payload: bytes, preamble: Preamble, place: Place) -> NDArray[np.uint32]:
    """The coupons of a list or a set: 26 bits of a hash, and above them the value for the register."""
    if preamble.mode is Mode.LIST:
        start, count, most = BODY_OFFSET, preamble.least, _LIST_CAPACITY - 1
    else:
        start, most = SET_COUPONS_OFFSET, 3 * preamble.registers // 8 // 4
        _need(payload, start, place)
        (count,) = _SET_COUNT.unpack_from(payload, BODY_OFFSET)
    if count > most:
        raise HllError(place, f"at most {most} coupons in a {preamble.mode.name.lower()}", str(count))
    coupons = _read_ints(payload, start, count, bool(preamble.flags & HllFlag.COMPACT), place)
    if not (coupons >> _SLOT_BITS).all():
        raise HllError(place.at(start), "coupons with values above 0", "0")
    if len(np.unique(coupons)) < count:
        raise HllError(place.at(start), f"{count} distinct coupons", "one twice")
    return coupons


def read_registers(payload: bytes, place: Place) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Return the value of each register, and the exceptions: those that four bits cannot hold."""
    preamble = read_preamble(payload, place)
    end = REGISTERS_OFFSET + _register_bytes(preamble)
    _need(payload, end, place)
    packed = np.frombuffer(payload, np.uint8, end - REGISTERS_OFFSET, REGISTERS_OFFSET)
    *_, count = _ESTIMATORS.unpack_from(payload, BODY_OFFSET)
    if count > (preamble.registers if preamble.kind is HllKind.HLL_4 else 0):
        raise HllError(place.at(BODY_OFFSET), f"exceptions as {preamble.kind.name} has them", str(count))
    is_compact = bool(preamble.flags & HllFlag.COMPACT) or preamble.kind is not HllKind.HLL_4
    exceptions = _read_ints(payload, end, count, is_compact, place)
    if preamble.kind is HllKind.HLL_4:
        values = _unpack_4(packed, preamble, exceptions, place)
    else:
        values = packed if preamble.kind is HllKind.HLL_8 else _unpack_6(packed[:-1])
    if values.max() > MAX_VALUE:
        raise HllError(place.at(REGISTERS_OFFSET), f"registers up to {MAX_VALUE}", str(values.max()))
    return values, exceptions


def _register_bytes(preamble: Preamble) -> int:
    """How many bytes the registers take; with six bits each, the library has one more byte."""
    return {
        HllKind.HLL_4: preamble.registers // 2,
        HllKind.HLL_6: preamble.registers // 4 * 3 + 1,
        HllKind.HLL_8: preamble.registers,
    }[preamble.kind]


def _unpack_6(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Four registers in three bytes, the lowest bits first."""
    one, two, three = packed.reshape(-1, 3).T
    four = np.stack((one, one >> 6 | two << 2, two >> 4 | three << 4, three >> 2), axis=1)
    return (four & 0x3F).astype(np.uint8).reshape(-1)


def _unpack_4(
    packed: NDArray[np.uint8], preamble: Preamble, exceptions: NDArray[np.uint32], place: Place
) -> NDArray[np.uint8]:
    """Two registers in a byte, each above the least value; the exceptions have their own."""
    least = preamble.least
    if least > MAX_VALUE:
        raise HllError(place.at(LEAST_OFFSET), f"a least value up to {MAX_VALUE}", str(least))
    values = np.stack((packed & 0xF, packed >> 4), axis=1).reshape(-1)
    slots = exceptions & np.uint32(preamble.registers - 1)
    marked = np.flatnonzero(values == _EXCEPTION)
    end = place.at(REGISTERS_OFFSET + len(packed))
    if not np.array_equal(np.sort(slots), marked):
        raise HllError(end, f"exceptions for the {len(marked)} registers that are marked", "others")
    own = exceptions >> _SLOT_BITS
    if len(own) and own.min() < least + _EXCEPTION:
        raise HllError(end, f"exceptions from {least + _EXCEPTION} on", str(own.min()))
    values += np.uint8(least)
    values[slots] = own
    return values


def _check_estimators(payload: bytes, preamble: Preamble, values: NDArray[np.uint8], place: Place) -> None:
    """Check the numbers that are stored with the registers, from which the library estimates."""
    accumulated, *sums, at_least, _ = _ESTIMATORS.unpack_from(payload, BODY_OFFSET)
    least = preamble.least
    if values.min() < least:
        raise HllError(place.at(LEAST_OFFSET), f"the least value {values.min()} of the registers", str(least))
    counted = np.count_nonzero(values == least)
    if counted != at_least:
        raise HllError(place.at(BODY_OFFSET), f"{counted} registers of the least value", str(at_least))
    expected = float(np.ldexp(1.0, -values.astype(np.int32)).sum())
    if not abs(sum(sums) - expected) <= _NEARLY * expected:  # which includes NaN
        raise HllError(place.at(BODY_OFFSET), f"the sum {expected} of the registers", str(sum(sums)))
    filled = np.count_nonzero(values)
    is_used = not preamble.flags & HllFlag.OUT_OF_ORDER
    if is_used and not (filled <= accumulated * (1 + _NEARLY) and math.isfinite(accumulated)):
        raise HllError(place.at(BODY_OFFSET), f"an estimate of at least {filled}", str(accumulated))


def _read_ints(payload: bytes, start: int, count: int, is_compact: bool, place: Place) -> NDArray[np.uint32]:
    """The *count* numbers above 0 that fill the rest, consecutive or with gaps of 0; ascending."""
    size = len(payload) - start
    places = size // _INT
    expected = f"{count} numbers in {count * _INT} bytes" if is_compact else f"a table of {count} numbers"
    if size % _INT or (places != count if is_compact else places & (places - 1)):
        raise HllError(place.at(start), expected, f"{size} bytes")
    table = np.frombuffer(payload, "<u4", places, start)
    numbers = np.sort(table[table != 0])
    if len(numbers) != count:
        raise HllError(place.at(start), expected, f"{len(numbers)} numbers")
    return numbers


def _need(payload: bytes, size: int, place: Place) -> None:
    if len(payload) < size:
        raise HllError(place, f"at least {size} bytes", str(len(payload)))
