"""Reading a Puffin file by ranges: one read opens it (two if its footer is long), few read its blobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rookery.io import Readable, Source, open_source
from rookery.model import Place, UsageError
from rookery.puffin import codecs
from rookery.puffin.errors import PuffinError, PuffinLimitError, UnsupportedPuffinError
from rookery.puffin.footer import decode_footer
from rookery.puffin.layout import (
    FOOTER_FRAME_SIZE,
    HEADER_SIZE,
    KNOWN_FLAGS,
    MAGIC,
    MIN_FILE_SIZE,
    TAIL_FLAGS_OFFSET,
    TAIL_MAGIC_OFFSET,
    TAIL_SIZE,
    FooterFlag,
    Tail,
)
from rookery.puffin.metadata import BlobMetadata, FileMetadata


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a reader in bytes, even if a file states more."""

    footer: int = 256 << 20
    blob: int = 1 << 30


DEFAULT_LIMITS = Limits()
# What other files of a table begin or end with, and what they are.
_OTHERS = {b"PAR1": "a Parquet file", b"PARE": "an encrypted Parquet file", b"Obj\x01": "an Avro file"}
_OTHERS_HINT = "name a Puffin file: `puffin` commands read those, `rookery read` the rows of a table"
FIRST_READ = 64 << 10  # from the end of the file: holds the footer of most
MAX_GAP = 64 << 10  # blobs closer than this are read together
MAX_SPAN = 16 << 20  # and no read is made longer than this by joining


class Reader:
    """An open Puffin file: its metadata, and its blobs on demand.

    The header's magic is checked as soon as a read comes near the start of the file; a read is not
    spent on those four bytes alone.
    """

    def __init__(
        self, source: Source, *, file_size: int | None = None, footer_size: int | None = None, limits: Limits
    ) -> None:
        self.source = source
        self.limits = limits
        self.size = source.size if file_size is None else file_size
        self._header_checked = False
        self._window_start, self._window = self._read_end(footer_size)
        self.tail = self._read_tail()
        self.footer_start = self.size - FOOTER_FRAME_SIZE - self.tail.payload_size
        self.metadata = self._read_metadata()

    # -- opening

    def _place(self, offset: int) -> Place:
        return Place(self.source.name, offset)

    def _read_end(self, footer_size: int | None) -> tuple[int, bytes]:
        if self.size < MIN_FILE_SIZE:
            raise PuffinError(
                self._place(0), f"at least {MIN_FILE_SIZE} bytes", f"{self.size}: not a Puffin file"
            )
        wanted = FIRST_READ if footer_size is None else max(footer_size, TAIL_SIZE)
        start = max(self.size - wanted, 0)
        data = self.source.read(start, self.size - start)
        self._check_header(start, data)
        return start, data

    def _check_header(self, start: int, data: bytes) -> None:
        if start == 0 and not self._header_checked:
            if data[:HEADER_SIZE] != MAGIC:
                raise self._not_puffin(0, f"the magic {MAGIC!r}", data[:HEADER_SIZE], None)
            self._header_checked = True

    def _read_tail(self) -> Tail:
        tail = Tail.unpack(self._window)
        start = self.size - TAIL_SIZE
        if tail.magic != MAGIC:
            hint = "the file is truncated, or is not a Puffin file"
            place = start + TAIL_MAGIC_OFFSET
            raise self._not_puffin(place, f"the magic {MAGIC!r} at the end", tail.magic, hint)
        if tail.flags & ~KNOWN_FLAGS:
            raise UnsupportedPuffinError(
                self._place(start + TAIL_FLAGS_OFFSET), "no flags but bit 0 of byte 0", f"{tail.flags:#010x}"
            )
        if not 0 <= tail.payload_size <= self.size - MIN_FILE_SIZE:
            raise PuffinError(
                self._place(start),
                f"a footer payload of at most {self.size - MIN_FILE_SIZE} bytes",
                f"a size of {tail.payload_size}",
            )
        if tail.payload_size > self.limits.footer:
            raise PuffinLimitError(
                self._place(start),
                f"a footer payload of at most {self.limits.footer} bytes",
                str(tail.payload_size),
            )
        return tail

    def _not_puffin(self, offset: int, expected: str, magic: bytes, hint: str | None) -> PuffinError:
        """Return the error of another magic, with the format that it is of if that is known."""
        if (other := _OTHERS.get(magic)) is None:
            return PuffinError(self._place(offset), expected, repr(magic), hint=hint)
        return PuffinError(self._place(offset), expected, f"{magic!r}: this is {other}", hint=_OTHERS_HINT)

    def _read_metadata(self) -> FileMetadata:
        if self.footer_start < self._window_start:
            missing = self.source.read(self.footer_start, self._window_start - self.footer_start)
            self._window_start, self._window = self.footer_start, missing + self._window
        footer = self._window[self.footer_start - self._window_start :]
        if footer[: len(MAGIC)] != MAGIC:
            raise PuffinError(
                self._place(self.footer_start),
                f"the magic {MAGIC!r} before the footer",
                repr(footer[: len(MAGIC)]),
            )
        payload = footer[len(MAGIC) : -TAIL_SIZE]
        place = self._place(self.footer_start + len(MAGIC))
        if self.tail.flags & FooterFlag.COMPRESSED_FOOTER:
            payload = codecs.decompress(codecs.LZ4, payload, place, self.limits.footer)
        return decode_footer(payload, place, self.footer_start)

    @property
    def footer_size(self) -> int:
        """The footer's length, as table metadata records it."""
        return self.size - self.footer_start

    # -- blobs

    def blob(self, index: int) -> BlobMetadata:
        """Return the description of blob number *index*, counted from 0."""
        if not 0 <= index < len(self.metadata.blobs):
            count = len(self.metadata.blobs)
            raise UsageError(
                f"{self.source.name} has no blob {index}",
                hint=f"it has {count}: 0 to {count - 1}" if count else "it has none",
            )
        return self.metadata.blobs[index]

    def read(self, blob: BlobMetadata) -> bytes:
        """Read one payload, decompressed."""
        return self.decompress(blob, self.read_stored(blob))

    def read_stored(self, blob: BlobMetadata) -> bytes:
        """Read one payload as stored."""
        return next(self._stored([blob]))[1]

    def read_range(self, blob: BlobMetadata, offset: int, length: int) -> bytes:
        """Read *length* bytes from *offset* of a payload that is stored as it is."""
        if blob.codec is not None:
            raise UsageError(f"a {blob.codec} blob has no ranges", hint="read it whole")
        if offset < 0 or length < 0 or offset + length > blob.length:
            raise PuffinError(
                self._place(blob.offset), f"a range of {blob.length} bytes", f"{length} from {offset}"
            )
        start = blob.offset + offset
        if start >= self._window_start:  # part of the first read
            return self._window[start - self._window_start :][:length]
        return self.source.read(start, length)

    def read_many(self, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
        """Read payloads, decompressed, in the order of the file; blobs that are close share a read."""
        return ((blob, self.decompress(blob, stored)) for blob, stored in self._stored(blobs))

    def read_many_stored(self, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
        """Read payloads as they are stored, in the order of the file; adjacent ones are read together."""
        return self._stored(blobs)

    def decompress(self, blob: BlobMetadata, stored: bytes) -> bytes:
        """Decompress a stored payload of *blob*."""
        return codecs.decompress(blob.codec, stored, self._place(blob.offset), self.limits.blob)

    def _stored(self, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
        wanted = sorted(blobs, key=lambda blob: blob.offset)
        for blob in wanted:
            if blob.length > self.limits.blob:
                raise PuffinLimitError(
                    self._place(blob.offset), f"a blob of at most {self.limits.blob} bytes", str(blob.length)
                )
        for start, end, group in _spans(wanted):
            data, data_start = self._range(start, end)
            for blob in group:
                at = blob.offset - data_start
                yield blob, data[at : at + blob.length]

    def _range(self, start: int, end: int) -> tuple[bytes, int]:
        if start >= self._window_start:  # part of the first read
            return self._window, self._window_start
        if not self._header_checked and start <= MAX_GAP:
            start = 0
        data = self.source.read(start, end - start)
        self._check_header(start, data)
        return data, start

    def check_header(self) -> None:
        """Check the header's magic now, with a read of its own if necessary."""
        if not self._header_checked:
            self._check_header(0, self.source.read(0, HEADER_SIZE))

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _spans(blobs: list[BlobMetadata]) -> Iterator[tuple[int, int, list[BlobMetadata]]]:
    """Group blobs, sorted by offset, into ranges worth one read each."""
    group: list[BlobMetadata] = []
    start = end = 0
    for blob in blobs:
        if group and (blob.offset - end > MAX_GAP or max(end, blob.end) - start > MAX_SPAN):
            yield start, end, group
            group = []
        if not group:
            start = end = blob.offset
        group.append(blob)
        end = max(end, blob.end)
    if group:
        yield start, end, group


def open_puffin(
    what: Readable,
    *,
    file_size: int | None = None,
    footer_size: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    properties: Mapping[str, str] | None = None,
) -> Reader:
    """Open a Puffin file: a path, a URL, bytes, a PyIceberg `InputFile` or a `Source`.

    With *file_size* and *footer_size*, which table metadata records, opening takes exactly one read.
    *properties* are a catalog's, for the credentials of a URL.
    """
    source = open_source(what, properties)
    try:
        return Reader(source, file_size=file_size, footer_size=footer_size, limits=limits)
    except BaseException:
        source.close()
        raise
