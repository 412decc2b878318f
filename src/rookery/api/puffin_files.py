"""Looking into Puffin files, checking and copying them; each call returns a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.api.blob_types import CHECKS, Summarize, Summary, summary_of
from rookery.io import Readable, open_source, shown
from rookery.model import Check, FormatError, UsageError, findings
from rookery.puffin import (
    DEFAULT_LIMITS,
    KEEP,
    BlobMetadata,
    Limits,
    Reader,
    Writer,
    copy_blobs,
    open_puffin,
    selection,
)
from rookery.puffin.layout import Flag
from rookery.puffin.verify import verify as verify_source


@dataclass(frozen=True, slots=True)
class BlobView:
    """A blob: its description, a summary of what is inside, or why there is none."""

    number: int
    metadata: BlobMetadata
    summary: Summary | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class PuffinView:
    """A Puffin file as a person would like to see it."""

    file: str
    size: int
    footer_size: int
    footer_compressed: bool
    properties: Mapping[str, str]
    extra: Mapping[str, Any]
    blobs: tuple[BlobView, ...]

    @property
    def has_findings(self) -> bool:
        """Whether some blob could not be decoded."""
        return any(blob.problem for blob in self.blobs)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The outcome of every check."""

    file: str
    checks: tuple[Check, ...]

    @property
    def has_findings(self) -> bool:
        """Whether any check failed."""
        return bool(findings(self.checks))


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy wrote."""

    source: str
    target: str
    blobs_in: int
    blobs_out: int
    bytes_in: int
    bytes_out: int

    has_findings = False


def inspect(file: Readable, properties: Mapping[str, str] | None = None) -> PuffinView:
    """Describe a file and decode the blobs of known types."""
    with open_puffin(file, properties=properties) as reader:
        blobs = tuple(reader.metadata.blobs)
        ways = ((blob, summary_of(blob)) for blob in blobs)
        known = {id(blob): way for blob, way in ways if way is not None}  # empty blobs may share an offset
        wanted = [blob for blob in blobs if id(blob) in known]
        summaries = {
            id(blob): _summarize(reader, blob, stored, known[id(blob)])
            for blob, stored in reader.read_many_stored(wanted)
        }
        return PuffinView(
            reader.source.name,
            reader.size,
            reader.footer_size,
            bool(reader.tail.flags & Flag.COMPRESSED_FOOTER),
            reader.metadata.properties,
            reader.metadata.extra,
            tuple(
                BlobView(number, blob, *summaries.get(id(blob), (None, None)))
                for number, blob in enumerate(blobs)
            ),
        )


def _summarize(
    reader: Reader, blob: BlobMetadata, stored: bytes, way: Summarize
) -> tuple[Summary | None, str | None]:
    try:
        payload = reader.decompress(blob, stored)
        return way(blob, payload, reader.source.name), None
    except FormatError as error:  # one bad blob does not hide the others
        return None, str(error)


def verify(
    file: Readable, properties: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> VerifyReport:
    """Check everything that the specification says of a file."""
    with open_source(file, properties) as source:
        return VerifyReport(source.name, verify_source(source, CHECKS, limits))


def payload(
    file: Readable, number: int, properties: Mapping[str, str] | None = None, *, stored: bool = False
) -> bytes:
    """Return the payload of blob *number*, decompressed unless *stored* is asked for."""
    with open_puffin(file, properties=properties) as reader:
        blob = reader.blob(number)
        return reader.read_stored(blob) if stored else reader.read(blob)


def copy(
    source: Readable,
    target: str,
    *,
    numbers: Sequence[int] = (),
    types: Sequence[str] = (),
    dropped_types: Sequence[str] = (),
    codec: str = KEEP,
    compress_footer: bool = False,
    overwrite: bool = False,
    properties: Mapping[str, str] | None = None,
) -> CopyReport:
    """Copy a file: blobs selected by number or type, or dropped; recompressed with *codec* unless `keep`."""
    with open_puffin(source, properties=properties) as reader:
        if isinstance(source, str) and source == target:
            raise UsageError("a file cannot be copied onto itself", hint="choose another name")
        wanted = selection(len(reader.metadata.blobs), numbers, types, dropped_types)
        with Writer(
            target,
            codec="none" if codec == KEEP else codec,
            compress_footer=compress_footer,
            properties=reader.metadata.properties,
            extra=reader.metadata.extra,
            overwrite=overwrite,
            io_properties=properties,
        ) as writer:
            written = copy_blobs(reader, writer, wanted, codec)
        return CopyReport(
            reader.source.name,
            shown(written.location),
            len(reader.metadata.blobs),
            len(written.metadata.blobs),
            reader.size,
            written.size,
        )
