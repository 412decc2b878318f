"""Every check that the specification allows, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rookery.io import Source
from rookery.model import Check, CheckOutcome, FormatError, counted
from rookery.puffin import codecs
from rookery.puffin.layout import HEADER_SIZE, FooterFlag
from rookery.puffin.metadata import CREATED_BY_PROPERTY, BlobMetadata
from rookery.puffin.reader import Limits, Reader

PayloadCheck = Callable[[str, BlobMetadata, bytes], Iterable[Check]]
"""Given the subject (how to name the blob), its description and its payload, what is right and wrong."""

FILE = "file"
FOOTER = "footer"


def verify(source: Source, payload_checks: Mapping[str, PayloadCheck], limits: Limits) -> tuple[Check, ...]:
    """Check a whole file; *payload_checks* know what is inside the blobs of a type."""
    try:
        reader = Reader(source, limits=limits)
        reader.check_header()
    except FormatError as error:
        return (
            Check(
                subject=FILE,
                rule="opens as a Puffin file",
                outcome=CheckOutcome.FINDING,
                detail=str(error),
                hint=error.hint,
            ),
        )
    return (*_check_file(reader), *_check_gaps(reader), *_check_blobs(reader, payload_checks))


def _check_file(reader: Reader) -> Iterator[Check]:
    """The checks that the reader has already made, and the others of the file."""
    payload_size = reader.tail.payload_size
    yield Check(FILE, "magic at the start", CheckOutcome.OK)
    yield Check(FILE, "magic before and after the footer", CheckOutcome.OK)
    yield Check(FOOTER, "flags known", CheckOutcome.OK, f"{reader.tail.flags:#010x}")
    yield Check(FOOTER, "payload size fits the file", CheckOutcome.OK, f"{payload_size:,} bytes")
    if reader.tail.flags & FooterFlag.COMPRESSED_FOOTER:
        payload = reader.source.read(reader.footer_start + HEADER_SIZE, payload_size)
        size = codecs.CODECS[codecs.LZ4].content_size(payload)
        yield Check.of(FOOTER, "LZ4 frame states its content size", size is not None)
    yield Check(
        FOOTER,
        "UTF-8 JSON with blobs and properties",
        CheckOutcome.OK,
        counted(len(reader.metadata.blobs), "blob"),
    )
    created_by = reader.metadata.properties.get(CREATED_BY_PROPERTY)
    yield Check(
        FOOTER,
        "names its writer in created-by",
        CheckOutcome.OK if created_by else CheckOutcome.NOTE,
        created_by or "it does not; the specification recommends it",
    )
    yield Check(FILE, "blobs lie between header and footer", CheckOutcome.OK)
    yield Check(FILE, "no two blobs overlap", CheckOutcome.OK)


def _check_gaps(reader: Reader) -> Iterator[Check]:
    try:
        blobs = sorted((blob for blob in reader.metadata.blobs if blob.length), key=lambda blob: blob.offset)
    except FormatError:
        return  # reported blob by blob
    ends = [HEADER_SIZE, *(blob.end for blob in blobs)]
    starts = [*(blob.offset for blob in blobs), reader.footer_start]
    gaps = [(end, start) for end, start in zip(ends, starts, strict=True) if start != end]
    detail = ", ".join(f"bytes {end} to {start}" for end, start in gaps[:3]) + (" …" if len(gaps) > 3 else "")
    yield Check.of(FILE, "no bytes that belong to no blob", not gaps, detail)


def _check_blobs(reader: Reader, payload_checks: Mapping[str, PayloadCheck]) -> Iterator[Check]:
    for index in range(len(reader.metadata.blobs)):
        subject = f"blob {index}"
        try:
            blob = reader.metadata.blobs[index]
        except FormatError as error:
            yield Check(subject, "metadata complete", CheckOutcome.FINDING, str(error))
            continue
        yield Check(subject, "metadata complete", CheckOutcome.OK, blob.type)
        yield from _check_blob(reader, subject, blob, payload_checks)


def _check_blob(
    reader: Reader, subject: str, blob: BlobMetadata, payload_checks: Mapping[str, PayloadCheck]
) -> Iterator[Check]:
    rule = "not compressed" if blob.codec is None else f"one whole {blob.codec} frame"
    try:
        stored = reader.read_stored(blob)
        payload = reader.decompress(blob, stored)
    except FormatError as error:
        yield Check(
            subject=subject, rule=rule, outcome=CheckOutcome.FINDING, detail=str(error), hint=error.hint
        )
        return
    yield Check(subject, rule, CheckOutcome.OK, f"{blob.length:,} bytes, {len(payload):,} inside")
    if blob.codec is not None:
        size = codecs.CODECS[blob.codec].content_size(stored)
        yield Check.of(subject, "frame states its content size", size is not None)
    if blob.type in payload_checks:
        yield from payload_checks[blob.type](subject, blob, payload)
    else:
        yield Check(subject, "payload", CheckOutcome.NOTE, f"the type {blob.type} is not known: skipped")
