"""What is known of blob types: how to sum up a payload, and how to check it. The world stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rookery.model import Certainty, Check, Estimate, FormatError, Outcome, Place
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, BlobMetadata, DeletionVector
from rookery.puffin.deletion_vector import REFERENCED_DATA_FILE
from rookery.puffin.verify import PAYLOAD_CHECKS, PayloadCheck
from rookery.sketch import InvertedTheta, ThetaSketch
from rookery.sketch.blob_types import (
    CHECKSUM,
    HEAD_CHECKSUM,
    INVERTED_THETA_V1,
    KLL_V1,
    TABLE_THETA_V1,
    TOP_K_V1,
)

NDV = "ndv"

Summary = Mapping[str, object]
Summarize = Callable[[BlobMetadata, bytes, str], Summary]


def summarize_theta(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The number of distinct values, with bounds, and how much the sketch keeps."""
    sketch = ThetaSketch.decode(payload, place=Place(file, blob.offset))
    return {NDV: sketch.estimate(), "hashes": len(sketch.hashes), "theta": sketch.share}


def summarize_deletion_vector(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """How many rows of which data file are deleted, and between which positions."""
    vector = DeletionVector.from_blob(blob, payload, file)
    span = {"first": vector.bitmap.min(), "last": vector.bitmap.max()} if vector.cardinality else {}
    return {
        "cardinality": vector.cardinality,
        "data_file": blob.properties[REFERENCED_DATA_FILE],
        **span,
    }


def summarize_inverted_theta(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The number of distinct values in all files of the group, and how many files there are."""
    theta = InvertedTheta.decode(payload, place=Place(file, blob.offset))
    return {
        NDV: theta.sketch().estimate(),
        "files": theta.files,
        "hashes": len(theta.hashes),
        "theta": theta.share,
    }


def summarize_quantiles(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The median, and of how many rows."""
    from rookery.sketch.quantiles import Quantiles  # brings pyarrow, which other blobs do without

    quantiles = Quantiles.decode(payload, place=Place(file, blob.offset))
    median = quantiles.at([0.5])
    return {
        "median": median[0] if median else None,
        "rows": quantiles.count,
        "rank_error": quantiles.rank_error,
    }


def summarize_frequent(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The most frequent values."""
    from rookery.sketch.frequent import Frequent  # brings pyarrow, which other blobs do without

    frequent = Frequent.decode(payload, place=Place(file, blob.offset))
    top = ", ".join(f"{value} ({count.value:,.0f})" for value, count in frequent.top(3))
    return {"most_frequent": top or "none", "rows": frequent.count}


def check_theta(subject: str, blob: BlobMetadata, payload: bytes) -> Iterator[Check]:
    """Check an `apache-datasketches-theta-v1`, and its `ndv` if it states one."""
    try:
        estimate = ThetaSketch.decode(payload).estimate()
    except FormatError as error:
        yield Check(subject, "a compact theta sketch", Outcome.FINDING, str(error))
        return
    yield Check(subject, "a compact theta sketch", Outcome.OK, describe(estimate))
    stated = blob.properties.get(NDV)
    if stated is None:
        return
    proper = stated.isascii() and stated.isdigit() and len(stated) < 20
    yield Check.of(subject, "ndv is a number", proper, repr(stated))
    if proper:  # writers differ in whether they round or cut
        yield Check.of(subject, "ndv as the sketch estimates", abs(int(stated) - estimate.value) <= 1, stated)


def describe(estimate: Estimate) -> str:
    """Say an estimate in words.

    >>> describe(Estimate.exact(7)), describe(Estimate(10.4, 8.2, 12.9, Certainty.SKETCHED))
    ('7 exactly', 'about 10, between 8 and 13')
    """
    if estimate.kind is Certainty.EXACT:
        return f"{estimate.value:,.0f} exactly"
    return f"about {estimate.value:,.0f}, between {estimate.low:,.0f} and {estimate.high:,.0f}"


SUMMARIES: Mapping[str, Summarize] = {
    THETA_V1: summarize_theta,
    DELETION_VECTOR_V1: summarize_deletion_vector,
    TABLE_THETA_V1: summarize_theta,
    INVERTED_THETA_V1: summarize_inverted_theta,
    KLL_V1: summarize_quantiles,
    TOP_K_V1: summarize_frequent,
}
CHECKS: Mapping[str, PayloadCheck] = {**PAYLOAD_CHECKS, THETA_V1: check_theta}


def summary_of(blob: BlobMetadata) -> Summarize | None:
    """Return how to sum up a blob, one of an index too; None if its type is not known."""
    found = SUMMARIES.get(blob.type)
    if found is not None or not {CHECKSUM, HEAD_CHECKSUM} & blob.properties.keys():  # none of ours
        return found
    from rookery.indexes import KINDS  # brings pyarrow and PyIceberg, which other blobs do without

    kind = next((kind for kind in KINDS.values() if kind.blob_type == blob.type), None)
    if kind is None:
        return None
    describe = kind.describe
    return lambda blob, payload, file: describe(payload, Place(file, blob.offset))
