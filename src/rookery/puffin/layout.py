"""The position of each byte of a Puffin file.

Magic Blob₁ … Blobₙ Magic FooterPayload FooterPayloadSize Flags Magic
"""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import NamedTuple

MAGIC = b"PFA1"  # Puffin, Fratercula arctica, version 1
HEADER_SIZE = len(MAGIC)

_TAIL = struct.Struct("<iI4s")
TAIL_SIZE = _TAIL.size
TAIL_FLAGS_OFFSET = 4
TAIL_MAGIC_OFFSET = 8

FOOTER_FRAME_SIZE = len(MAGIC) + TAIL_SIZE  # a footer without its payload
MIN_FILE_SIZE = HEADER_SIZE + FOOTER_FRAME_SIZE
MAX_PAYLOAD_SIZE = 2**31 - 1  # the size is a signed 4-byte integer


class FooterFlag(IntFlag):
    """The footer's flags: 32 bits, byte 0 first, lowest bit first; all others are reserved."""

    COMPRESSED_FOOTER = 1


KNOWN_FLAGS = int(FooterFlag.COMPRESSED_FOOTER)


class Tail(NamedTuple):
    """The fixed-length end of the footer."""

    payload_size: int
    flags: int
    magic: bytes

    @classmethod
    def unpack(cls, data: bytes) -> Tail:
        """Read the last `TAIL_SIZE` bytes of *data*."""
        return cls(*_TAIL.unpack_from(data, len(data) - TAIL_SIZE))

    def pack(self) -> bytes:
        """Return the bytes."""
        return _TAIL.pack(*self)
