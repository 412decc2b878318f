"""Looking into Puffin files, checking and copying them; each call returns a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.blobs import CHECKS, KNOWN, Summarize, Summary
from rookery.io import Readable, open_source, scheme_of, shown
from rookery.model import (
    Check,
    Estimate,
    FormatError,
    Report,
    Sheet,
    UsageError,
    counted,
    describe,
    findings,
    in_bytes,
)
from rookery.model.check import check_sheet
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
from rookery.puffin.codecs import CODECS as _COMPRESSIONS
from rookery.puffin.codecs import NONE
from rookery.puffin.layout import FooterFlag
from rookery.puffin.verify import verify as verify_source
from rookery.sketch.blob_types import CHECKSUM, HEAD_CHECKSUM

__all__ = [
    "CODECS",
    "BlobView",
    "CopyReport",
    "PuffinView",
    "VerifyReport",
    "copy",
    "inspect",
    "is_remote",
    "payload",
    "verify",
]

CODECS = (KEEP, NONE, *_COMPRESSIONS)  # what blobs may be copied with


@dataclass(frozen=True, slots=True)
class BlobView:
    """A blob: its metadata, and a summary of its content or the reason why there is none."""

    number: int
    metadata: BlobMetadata
    summary: Summary | None
    problem: str | None

    def cells(self) -> tuple[str, ...]:
        """The blob as a row of a table."""
        blob = self.metadata
        return (
            str(self.number),
            blob.type,
            ", ".join(map(str, blob.fields)),
            in_bytes(blob.length),
            f"{blob.offset:,}",
            blob.codec or "–",
            "; ".join(self._contents()),
        )

    def _contents(self) -> Iterator[str]:
        blob = self.metadata
        if self.problem:
            yield f"✗ {self.problem}"
        for key, value in (self.summary or {}).items():
            yield f"{key.replace('_', ' ')} {_format(value)}"
        if blob.snapshot_id != -1:
            yield f"snapshot {blob.snapshot_id}, sequence number {blob.sequence_number}"
        if self.summary is None:
            for key, value in (*blob.properties.items(), *blob.extra.items()):
                yield f"{key} {value}"


def _format(value: object) -> str:
    if isinstance(value, Estimate):
        return describe(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class PuffinView(Report):
    """A Puffin file, described."""

    file: str
    size: int
    footer_size: int
    footer_compressed: bool
    properties: Mapping[str, str]
    extra: Mapping[str, Any]
    blobs: tuple[BlobView, ...]

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether any blob could not be decoded."""
        return any(blob.problem for blob in self.blobs)

    def sheets(self) -> Sequence[Sheet]:
        """One line per blob, and the footer."""
        header = ("blob", "type", "field", "size", "offset", "codec", "contents")
        kind = "LZ4" if self.footer_compressed else "plain"
        footer = [f"footer: {in_bytes(self.footer_size)}, {kind}"]
        footer += [f"{key}: {value}" for key, value in (*self.properties.items(), *self.extra.items())]
        rows = tuple(blob.cells() for blob in self.blobs)
        title = f"{self.file}  {in_bytes(self.size)}"
        return [
            Sheet(
                title=title,
                header=header if rows else (),
                rows=rows,
                notes=tuple(footer),
                right=frozenset({0, 3, 4}),
            )
        ]


@dataclass(frozen=True, slots=True)
class VerifyReport(Report):
    """The outcome of every check."""

    file: str
    checks: tuple[Check, ...]

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether any check failed."""
        return bool(findings(self.checks))

    def sheets(self) -> Sequence[Sheet]:
        """One line per check, and a summary."""
        last = f"{counted(len(self.checks), 'check')}, {counted(len(findings(self.checks)), 'finding')}"
        return [check_sheet(self.file, self.checks, last)]


@dataclass(frozen=True, slots=True)
class CopyReport(Report):
    """What a copy wrote."""

    source: str
    target: str
    blobs_in: int
    blobs_out: int
    bytes_in: int
    bytes_out: int

    def sheets(self) -> Sequence[Sheet]:
        """One line: how many blobs and bytes were copied."""
        blobs = f"{self.blobs_out:,} of {counted(self.blobs_in, 'blob')}"
        return [Sheet(f"{self.target}  {blobs}, {in_bytes(self.bytes_out)} from {in_bytes(self.bytes_in)}")]


def is_remote(location: str) -> bool:
    """Whether a location is a URL, so that storage settings are needed."""
    return scheme_of(location) is not None


def inspect(file: Readable, properties: Mapping[str, str] | None = None) -> PuffinView:
    """Describe a file and decode the blobs of known types."""
    with open_puffin(file, properties=properties) as reader:
        blobs = tuple(reader.metadata.blobs)
        ways = ((blob, _summary_of(blob)) for blob in blobs)
        known = {id(blob): way for blob, way in ways if way is not None}  # empty blobs may share an offset
        wanted = [blob for blob in blobs if id(blob) in known]
        summaries = {
            id(blob): _summarize(reader, blob, stored, known[id(blob)])
            for blob, stored in reader.read_many_stored(wanted)
        }
        return PuffinView(
            file=reader.source.name,
            size=reader.size,
            footer_size=reader.footer_size,
            footer_compressed=bool(reader.tail.flags & FooterFlag.COMPRESSED_FOOTER),
            properties=reader.metadata.properties,
            extra=reader.metadata.extra,
            blobs=tuple(
                BlobView(number, blob, *summaries.get(id(blob), (None, None)))
                for number, blob in enumerate(blobs)
            ),
        )


def _summary_of(blob: BlobMetadata) -> Summarize | None:
    """How to sum up a blob, one of any index too; None if its type is not known."""
    if blob.type in KNOWN:
        return KNOWN[blob.type].summarize
    if not {CHECKSUM, HEAD_CHECKSUM} & blob.properties.keys():
        return None  # not one of Rookery's
    from rookery.indexes import KINDS  # brings pyarrow and PyIceberg, which other blobs do without

    return next((kind.summarize for kind in KINDS.values() if kind.blob_type == blob.type), None)


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
    """Check a file against the rules of the specification."""
    with open_source(file, properties) as source:
        return VerifyReport(source.name, verify_source(source, CHECKS, limits))


def payload(
    file: Readable, number: int, properties: Mapping[str, str] | None = None, *, stored: bool = False
) -> bytes:
    """Return the payload of blob *number*, decompressed unless *stored*."""
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
            source=reader.source.name,
            target=shown(written.location),
            blobs_in=len(reader.metadata.blobs),
            blobs_out=len(written.metadata.blobs),
            bytes_in=reader.size,
            bytes_out=written.size,
        )
