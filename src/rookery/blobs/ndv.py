"""What blob types with a number of distinct values have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rookery.model import Check, CheckOutcome, Estimate, FormatError, describe
from rookery.puffin import BlobMetadata

NDV = "ndv"


def check_ndv(
    subject: str, blob: BlobMetadata, rule: str, estimate: Callable[[], Estimate]
) -> Iterator[Check]:
    """Check that a sketch can be decoded, and its `ndv` if it states one."""
    try:
        found = estimate()
    except FormatError as error:
        yield Check(subject, rule, CheckOutcome.FINDING, str(error))
        return
    yield Check(subject, rule, CheckOutcome.OK, describe(found))
    stated = blob.properties.get(NDV)
    if stated is None:
        return
    proper = stated.isascii() and stated.isdigit() and len(stated) < 20
    yield Check.of(subject, "ndv is a number", proper, repr(stated))
    if proper:  # writers differ in whether they round or cut
        yield Check.of(
            subject, "ndv matches the sketch's estimate", abs(int(stated) - found.value) <= 1, stated
        )
