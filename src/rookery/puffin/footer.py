"""The footer's JSON, read and written.

A file of ten thousand blobs is opened to read a few of them. So opening decodes every blob's extent
(they must not overlap) and nothing else; a blob's description is decoded at first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, overload

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from rookery.model import Place, UsageError
from rookery.puffin.errors import PuffinError
from rookery.puffin.layout import HEADER_SIZE
from rookery.puffin.metadata import BlobMetadata, FileMetadata

_Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Extent(Struct, gc=False):
    offset: _Size
    length: _Size


class _File(Struct, gc=False, forbid_unknown_fields=True):
    blobs: list[_Extent]
    properties: dict[str, str] = {}


class _Blobs(Struct, gc=False):
    blobs: list[Raw]


class _Blob(Struct, rename="kebab", gc=False, forbid_unknown_fields=True):
    type: str
    fields: list[_Int]
    snapshot_id: _Long
    sequence_number: _Long
    offset: _Size
    length: _Size
    compression_codec: str | None = None
    properties: dict[str, str] = {}


_FILE = msgspec.json.Decoder(_File)
_BLOBS = msgspec.json.Decoder(_Blobs)
_BLOB = msgspec.json.Decoder(_Blob)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _known(struct: type[Struct]) -> frozenset[str]:
    return frozenset(struct.__struct_encode_fields__)


def _decode(
    decoder: msgspec.json.Decoder[Any], struct: type[Struct], data: bytes | Raw
) -> tuple[Any, dict[str, Any]]:
    """Decode strictly; where that fails over unknown keys, decode again and return them too."""
    try:
        return decoder.decode(data), {}
    except msgspec.ValidationError:
        everything = _OBJECT.decode(data)
        known = _known(struct)
        extra = {key: value for key, value in everything.items() if key not in known}
        if not extra:
            raise
        rest = {key: value for key, value in everything.items() if key in known}
        return msgspec.convert(rest, struct), extra


class LazyBlobs(Sequence[BlobMetadata]):
    """The blobs of a footer, each decoded at first use."""

    def __init__(self, payload: bytes, place: Place, count: int) -> None:
        self._payload = payload
        self._place = place
        self._count = count

    @cached_property
    def _raw(self) -> list[Raw]:
        return _BLOBS.decode(self._payload).blobs

    def _blob(self, index: int) -> BlobMetadata:
        try:
            wire, extra = _decode(_BLOB, _Blob, self._raw[index])
        except _ERRORS as error:
            raise PuffinError(
                self._place, f"metadata of blob {index} as the specification has it", str(error)
            ) from error
        return BlobMetadata(
            type=wire.type,
            fields=tuple(wire.fields),
            snapshot_id=wire.snapshot_id,
            sequence_number=wire.sequence_number,
            offset=wire.offset,
            length=wire.length,
            codec=wire.compression_codec,
            properties=wire.properties,
            extra=extra,
        )

    @overload
    def __getitem__(self, index: int) -> BlobMetadata: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[BlobMetadata, ...]: ...

    def __getitem__(self, index: int | slice) -> BlobMetadata | tuple[BlobMetadata, ...]:
        if isinstance(index, slice):
            return tuple(map(self._blob, range(*index.indices(self._count))))
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._blob(index % self._count)

    def __iter__(self) -> Iterator[BlobMetadata]:
        return map(self._blob, range(self._count))

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._count} blobs>"


def decode_footer(payload: bytes, place: Place, footer_start: int) -> FileMetadata:
    """Read a footer's JSON. *place* is its place in the file; blobs must end before *footer_start*."""
    try:
        wire, extra = _decode(_FILE, _File, payload)
    except _ERRORS as error:
        raise PuffinError(place, "a footer in JSON as the specification has it", str(error)) from error
    _check_extents(wire.blobs, place, footer_start)
    return FileMetadata(LazyBlobs(payload, place, len(wire.blobs)), wire.properties, extra)


def _check_extents(extents: Sequence[_Extent], place: Place, footer_start: int) -> None:
    """Every blob is between header and footer, and no two share a byte."""
    offsets = np.array([extent.offset for extent in extents], dtype=np.int64)
    lengths = np.array([extent.length for extent in extents], dtype=np.int64)
    outside = (offsets < HEADER_SIZE) | (offsets > footer_start) | (lengths > footer_start - offsets)
    if outside.any():
        index = int(outside.argmax())
        raise PuffinError(
            Place(place.file, int(offsets[index])),
            f"blob {index} between bytes {HEADER_SIZE} and {footer_start}",
            f"offset {offsets[index]}, length {lengths[index]}",
        )
    ends = offsets + lengths
    if (offsets[1:] >= ends[:-1]).all():  # in file order, as every writer leaves them
        return
    order = np.flatnonzero(lengths)
    order = order[np.argsort(offsets[order], kind="stable")]
    overlap = offsets[order][1:] < ends[order][:-1]
    if overlap.any():
        at = int(overlap.argmax())
        first, second = int(order[at]), int(order[at + 1])
        raise PuffinError(
            Place(place.file, int(offsets[second])),
            f"blob {second} after blob {first}, which ends at byte {ends[first]}",
            "an overlap",
        )


def encode_footer(metadata: FileMetadata) -> bytes:
    """Write a footer's JSON: compact, the keys in the order in which Iceberg writes them."""
    document: dict[str, Any] = {
        "blobs": [_blob_document(blob) | _unknown(blob.extra, _Blob) for blob in metadata.blobs]
    }
    if metadata.properties:
        document["properties"] = dict(metadata.properties)
    return msgspec.json.encode(document | _unknown(metadata.extra, _File))


def _blob_document(blob: BlobMetadata) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": blob.type,
        "fields": blob.fields,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.codec is not None:
        document["compression-codec"] = blob.codec
    if blob.properties:
        document["properties"] = dict(blob.properties)
    return document


def check_describable(blob: BlobMetadata) -> None:
    """Refuse values of a writer that readers would not accept from the footer."""
    try:
        msgspec.convert(_blob_document(blob), _Blob)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"a blob cannot be described so: {error}",
            hint="the specification has strings, 32-bit fields and 64-bit numbers",
        ) from error


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse the properties of a file that are not strings."""
    try:
        msgspec.convert(dict(properties), dict[str, str])
    except msgspec.ValidationError as error:
        raise UsageError(
            f"a file cannot have such properties: {error}", hint="keys and values are strings"
        ) from error


def _unknown(extra: Mapping[str, Any], struct: type[Struct]) -> dict[str, Any]:
    """Extra keys never shadow those of the specification."""
    known = _known(struct)
    return {key: value for key, value in extra.items() if key not in known}
