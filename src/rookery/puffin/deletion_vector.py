"""`deletion-vector-v1`: the positions of a data file's deleted rows, as a 64-bit roaring bitmap.

    length (4, big-endian)  magic  vector (roaring, portable, little-endian)  CRC-32 (4, big-endian)

Length and CRC cover magic and vector. The vector is a count of 32-bit bitmaps (8 bytes), then for each
its key (the upper 32 bits of its positions, 4 bytes, ascending) and the bitmap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyroaring import BitMap64
from zlib_ng import zlib_ng

from rookery.model import IN_MEMORY, Place, UsageError
from rookery.puffin.errors import DeletionVectorError
from rookery.puffin.metadata import DELETION_VECTOR_V1, Blob, BlobMetadata
from rookery.puffin.roaring import bitmap32_size, says_runs_truly

MAGIC = b"\xd1\xd3\x39\x64"
MAX_POSITION = 2**63 - 1
MAX_BLOB_SIZE = 2**31 - 1  # the length field is a signed integer for Iceberg's readers

REFERENCED_DATA_FILE = "referenced-data-file"
CARDINALITY = "cardinality"
ROW_POSITION_FIELD = 2147483645  # the reserved field id of `_pos`, which is what a vector is computed for

_LENGTH = struct.Struct(">I")
_CRC = struct.Struct(">I")
_COUNT = struct.Struct("<Q")
_KEY = struct.Struct("<I")
MAGIC_OFFSET = _LENGTH.size
VECTOR_OFFSET = MAGIC_OFFSET + len(MAGIC)
MIN_SIZE = VECTOR_OFFSET + _COUNT.size + _CRC.size
_MAX_KEY = MAX_POSITION >> 32
_SMALL = 16 << 10


@dataclass(frozen=True, eq=False, slots=True)
class DeletionVector:
    """A set of row positions, each at most 2^63 - 1.

    >>> vector = DeletionVector.of([3, 1, 2**40])
    >>> vector.cardinality, 3 in vector, vector.positions().tolist()
    (3, True, [1, 3, 1099511627776])
    >>> DeletionVector.decode(vector.encode()) == vector
    True
    """

    bitmap: BitMap64

    @classmethod
    def of(cls, positions: ArrayLike) -> Self:
        """Build a vector from positions in any order, repeated or not."""
        array = np.asarray(positions)
        if array.size == 0:
            return cls(BitMap64())
        if (
            array.dtype.kind not in "iu"
            or (array.dtype.kind == "i" and array.min() < 0)
            or array.max() > MAX_POSITION
        ):
            raise UsageError("a row position is out of range", hint=f"positions run from 0 to {MAX_POSITION}")
        return cls(BitMap64(array.astype(np.uint64, copy=False)))

    @classmethod
    def of_range(cls, start: int, stop: int) -> Self:
        """Build a vector of all positions from *start* up to, not including, *stop*."""
        if not 0 <= start <= stop <= MAX_POSITION + 1:
            raise UsageError(f"no range of row positions: {start} to {stop}", hint="0 <= start <= stop")
        return cls(BitMap64(range(start, stop)) if stop > start else BitMap64())

    @classmethod
    def merge(cls, vectors: Iterable[DeletionVector]) -> Self:
        """Return the union of *vectors*."""
        return cls(BitMap64.union(BitMap64(), BitMap64(), *(vector.bitmap for vector in vectors)))

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return len(self.bitmap)

    def positions(self) -> NDArray[np.int64]:
        """Return the positions, ascending."""
        return np.frombuffer(self.bitmap.to_array(), dtype=np.int64) if self.bitmap else np.empty(0, np.int64)

    def __contains__(self, position: int) -> bool:
        return 0 <= position <= MAX_POSITION and position in self.bitmap

    def __len__(self) -> int:
        return len(self.bitmap)

    def __iter__(self) -> Iterator[int]:
        return iter(self.bitmap)

    def __or__(self, other: DeletionVector) -> DeletionVector:
        return DeletionVector(self.bitmap | other.bitmap)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionVector) and self.bitmap == other.bitmap

    __hash__ = None  # type: ignore[assignment]

    # -- bytes

    def encode(self) -> bytes:
        """Return the blob's payload, run-length encoded where that is smaller."""
        bitmap = self.bitmap.copy()
        bitmap.run_optimize()
        body = MAGIC + bitmap.serialize()
        if len(body) + _LENGTH.size + _CRC.size > MAX_BLOB_SIZE:
            raise UsageError("the deletion vector is larger than 2 GiB", hint="rewrite the data file instead")
        return _LENGTH.pack(len(body)) + body + _CRC.pack(zlib_ng.crc32(body))

    @classmethod
    def decode(
        cls, payload: bytes | memoryview, *, cardinality: int | None = None, place: Place = IN_MEMORY
    ) -> Self:
        """Read a payload, checking all that can be checked; *cardinality* is what its metadata claims."""
        view = memoryview(payload)
        vector = view[VECTOR_OFFSET : _check_frame(view, place)]
        bitmap = _deserialize(vector, place.at(VECTOR_OFFSET))
        if cardinality is not None and len(bitmap) != cardinality:
            raise DeletionVectorError(
                place, f"{cardinality} positions, as its metadata states", str(len(bitmap))
            )
        return cls(bitmap)

    # -- blobs

    def blob(self, data_file: str) -> Blob:
        """Return the blob that marks these rows of *data_file* (its location in table metadata) deleted."""
        return Blob(
            DELETION_VECTOR_V1,
            self.encode(),
            fields=(ROW_POSITION_FIELD,),
            properties={REFERENCED_DATA_FILE: data_file, CARDINALITY: str(self.cardinality)},
        )

    @classmethod
    def from_blob(cls, blob: BlobMetadata, payload: bytes, file: str = "<bytes>") -> Self:
        """Read the payload of *blob*, checking all that its metadata must state."""
        place = Place(file, blob.offset)
        for rule, kept, found in rules(blob):
            if not kept:
                raise DeletionVectorError(place, rule, found)
        return cls.decode(payload, cardinality=int(blob.properties[CARDINALITY]), place=place)


def rules(blob: BlobMetadata) -> Iterator[tuple[str, bool, str]]:
    """The rules of the specification for a deletion vector's metadata: rule, whether met, actual value."""
    cardinality = blob.properties.get(CARDINALITY)
    yield f"the type {DELETION_VECTOR_V1}", blob.type == DELETION_VECTOR_V1, repr(blob.type)
    yield "no compression codec", blob.codec is None, repr(blob.codec)
    yield "snapshot id -1", blob.snapshot_id == -1, str(blob.snapshot_id)
    yield "sequence number -1", blob.sequence_number == -1, str(blob.sequence_number)
    file = blob.properties.get(REFERENCED_DATA_FILE)
    yield f"the property {REFERENCED_DATA_FILE}", bool(file), repr(file)
    yield (
        f"the property {CARDINALITY}, a number",
        cardinality is not None and cardinality.isascii() and cardinality.isdigit() and len(cardinality) < 20,
        repr(cardinality),
    )


def _check_frame(view: memoryview, place: Place) -> int:
    """Check length, magic and CRC; return where the vector ends."""
    if len(view) < MIN_SIZE:
        raise DeletionVectorError(place, f"at least {MIN_SIZE} bytes", str(len(view)))
    (length,) = _LENGTH.unpack_from(view)
    if length != len(view) - _LENGTH.size - _CRC.size:
        raise DeletionVectorError(place, f"a length of {len(view) - _LENGTH.size - _CRC.size}", str(length))
    magic = bytes(view[MAGIC_OFFSET:VECTOR_OFFSET])
    if magic != MAGIC:
        raise DeletionVectorError(place.at(MAGIC_OFFSET), f"the magic {MAGIC.hex(' ')}", magic.hex(" "))
    end = len(view) - _CRC.size
    (stored,) = _CRC.unpack_from(view, end)
    computed = zlib_ng.crc32(view[MAGIC_OFFSET:end])
    if stored != computed:
        raise DeletionVectorError(place.at(end), f"the CRC {computed:#010x} of the bytes", f"{stored:#010x}")
    return end


def _deserialize(vector: memoryview, place: Place) -> BitMap64:
    try:
        bitmap = BitMap64.deserialize(vector)  # type: ignore[arg-type]  # any buffer will do
    except ValueError as error:
        _check_bitmaps(vector, place)  # raises a more precise error
        raise DeletionVectorError(place, "a roaring bitmap", str(error)) from error
    if not _is_whole(vector, bitmap):
        _check_bitmaps(vector, place)
    return bitmap


def _is_whole(vector: memoryview, bitmap: BitMap64) -> bool:
    """Whether the vector is a single bitmap that ends where it does, without a walk over its headers.

    The bitmap's own size is that of its bytes if both have run containers or neither has; one that states
    it has some and has none is left to the walk. So are large ones, of which a walk reads only the headers.
    """
    (count,) = _COUNT.unpack_from(vector)
    if count != 1 or len(vector) > _SMALL or bitmap.__sizeof__() != len(vector):
        return False
    (key,) = _KEY.unpack_from(vector, _COUNT.size)
    return key <= _MAX_KEY and says_runs_truly(vector[_COUNT.size + _KEY.size :])


def _check_bitmaps(vector: memoryview, place: Place) -> None:
    """Walk the 32-bit bitmaps: keys ascend, none has its top bit set, the last bitmap ends the vector."""
    (count,) = _COUNT.unpack_from(vector)
    position, last = _COUNT.size, -1
    if count > (len(vector) - position) // _KEY.size:
        raise DeletionVectorError(place, "a count of bitmaps that fits the vector", str(count))
    for _ in range(count):
        if len(vector) - position < _KEY.size:
            raise DeletionVectorError(place.at(position), "the key of a bitmap", "the end of the vector")
        (key,) = _KEY.unpack_from(vector, position)
        if not last < key <= _MAX_KEY:
            raise DeletionVectorError(place.at(position), f"a key from {last + 1} to {_MAX_KEY}", str(key))
        last = key
        position += _KEY.size
        size = bitmap32_size(vector[position:])
        if size is None:
            raise DeletionVectorError(
                place.at(position), "a whole 32-bit roaring bitmap", "the end of the vector"
            )
        position += size
    if position != len(vector):
        raise DeletionVectorError(
            place.at(position), "the end of the vector", f"{len(vector) - position} bytes more"
        )
