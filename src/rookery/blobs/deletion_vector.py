"""`deletion-vector-v1`: the deleted rows of a data file."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Check, CheckOutcome, FormatError
from rookery.puffin import DELETION_VECTOR_V1, BlobMetadata, DeletionVector
from rookery.puffin.deletion_vector import CARDINALITY, REFERENCED_DATA_FILE, rules


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """How many rows of which data file are deleted, and between which positions."""
    vector = DeletionVector.from_blob(blob, payload, file)
    span = {"first": vector.bitmap.min(), "last": vector.bitmap.max()} if vector.cardinality else {}
    return {
        "cardinality": vector.cardinality,
        "data_file": blob.properties[REFERENCED_DATA_FILE],
        **span,
    }


def check(subject: str, blob: BlobMetadata, payload: bytes) -> Iterator[Check]:
    """Check the vector and its metadata."""
    kept_all = True
    for rule, kept, found in rules(blob):
        kept_all &= kept
        yield Check.of(subject, rule, kept, "" if kept else f"found {found}")
    try:
        vector = DeletionVector.decode(payload)
    except FormatError as error:
        yield Check(
            subject=subject,
            rule="length, magic, CRC, keys and bitmaps",
            outcome=CheckOutcome.FINDING,
            detail=str(error),
            hint=error.hint,
        )
        return
    yield Check(subject, "length, magic, CRC, keys and bitmaps", CheckOutcome.OK)
    if kept_all:
        claimed = int(blob.properties[CARDINALITY])
        yield Check.of(
            subject,
            "cardinality matches the metadata",
            claimed == vector.cardinality,
            f"{vector.cardinality:,}" + ("" if claimed == vector.cardinality else f", not {claimed:,}"),
        )


# Not carried: manifests name the file and the offset, and a copy elsewhere deletes nothing.
BLOB_TYPE = BlobType(
    name=DELETION_VECTOR_V1,
    holds="the deleted rows of a data file",
    page="deletion-vector",
    summarize=summarize,
    check_payload=check,
)
