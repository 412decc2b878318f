"""Writing a Puffin file as a stream: at most one blob is in memory, and the file appears whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rookery.io import Sink, Writable, create_sink
from rookery.model import Place, UsageError
from rookery.puffin import codecs
from rookery.puffin.errors import PuffinError
from rookery.puffin.footer import check_describable, check_properties, encode_footer
from rookery.puffin.layout import MAGIC, MAX_PAYLOAD_SIZE, FooterFlag, Tail
from rookery.puffin.metadata import (
    CREATED_BY_PROPERTY,
    DELETION_VECTOR_V1,
    Blob,
    BlobMetadata,
    FileMetadata,
    WrittenFile,
)
from rookery.version import CREATED_BY


class Writer:
    """Adds blobs one by one; `finish` (or leaving the `with` in peace) publishes the file.

    >>> from rookery.io import BytesSink
    >>> with Writer(BytesSink()) as writer:
    ...     described = writer.add(Blob("my-blob", b"payload", fields=(1,)))
    >>> described.offset, described.codec, writer.written.size > 0
    (4, 'zstd', True)
    """

    written: WrittenFile

    def __init__(
        self,
        where: Writable,
        *,
        codec: str = codecs.ZSTD,
        compress_footer: bool = False,
        properties: Mapping[str, str] | None = None,
        created_by: str | None = CREATED_BY,
        extra: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        io_properties: Mapping[str, str] | None = None,
    ) -> None:
        if codec not in (codecs.NONE, *codecs.CODECS):
            raise UsageError(f"unknown codec '{codec}'", hint=f"choose none, {', '.join(codecs.CODECS)}")
        self._codec = codec
        self._compress_footer = compress_footer
        self._properties = dict(properties or {})
        if created_by is not None:
            self._properties[CREATED_BY_PROPERTY] = created_by
        check_properties(self._properties)
        self._extra = dict(extra or {})
        self._blobs: list[BlobMetadata] = []
        self._finished = False
        self._sink: Sink = create_sink(where, io_properties, overwrite=overwrite)
        try:
            self._sink.write(MAGIC)
        except BaseException:  # no `with` has been entered that would do it
            self._sink.discard()
            raise

    def add(self, blob: Blob) -> BlobMetadata:
        """Compress and append a blob; return its description with its place in the file."""
        # The specification forbids a codec on deletion vectors: readers take them by offset from manifests.
        default = codecs.NONE if blob.type == DELETION_VECTOR_V1 else self._codec
        codec = blob.codec or default
        if blob.type == DELETION_VECTOR_V1 and codec != codecs.NONE:
            raise UsageError("a deletion vector is never compressed", hint="omit its codec")
        stored = codecs.compress(codec, blob.payload, self._place())
        return self.add_stored(
            BlobMetadata(
                type=blob.type,
                fields=tuple(blob.fields),
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                offset=0,
                length=len(stored),
                codec=None if codec == codecs.NONE else codec,
                properties=blob.properties,
                extra=blob.extra,
            ),
            stored,
        )

    def add_stored(self, blob: BlobMetadata, stored: bytes) -> BlobMetadata:
        """Append a payload that is already in its stored form, described by *blob*, byte for byte."""
        self._check_open()
        placed = replace(blob, offset=self._sink.position, length=len(stored))
        check_describable(placed)
        self._sink.write(stored)
        self._blobs.append(placed)
        return placed

    def finish(self) -> WrittenFile:
        """Write the footer and publish the file."""
        self._check_open()
        metadata = FileMetadata(tuple(self._blobs), self._properties, self._extra)
        payload = encode_footer(metadata)
        flags = 0
        if self._compress_footer:
            payload = codecs.compress(codecs.LZ4, payload, self._place())
            flags = int(FooterFlag.COMPRESSED_FOOTER)
        if len(payload) > MAX_PAYLOAD_SIZE:
            raise PuffinError(
                self._place(), f"a footer of at most {MAX_PAYLOAD_SIZE} bytes", str(len(payload))
            )
        start = self._sink.position
        self._sink.write(MAGIC + payload + Tail(len(payload), flags, MAGIC).pack())
        size = self._sink.position
        self._finished = True
        self._sink.commit()
        self.written = WrittenFile(self._sink.name, size, size - start, metadata)
        return self.written

    def _check_open(self) -> None:
        if self._finished:
            raise UsageError(f"{self._sink.name} is finished", hint="open another writer")

    def _place(self) -> Place:
        return Place(self._sink.name, self._sink.position)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._finished:
                self.finish()
        finally:
            self._sink.discard()
