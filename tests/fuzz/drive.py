"""One input, through everything that reads: it is read, or refused with an error of ours, or it is a find."""

from __future__ import annotations

from rookery.blobs import CHECKS
from rookery.io import BytesSource
from rookery.model import FormatError, Place, RookeryError
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, DeletionVector, Limits, open_puffin
from rookery.puffin.verify import verify
from rookery.sketch import HllSketch, ThetaSketch
from rookery.sketch.blob_types import HLL_V1

NAME = "fuzz.puffin"
LIMITS = Limits(footer=64 << 10, blob=64 << 10)
READ = "read"


def drive(data: bytes, thorough: bool) -> set[str]:
    """Read *data*; return the outcomes, one for the file and more for its blobs.

    *thorough* verifies the file as well, which is slow. Any error that is not ours, or that does not say
    what a format error must, goes through to the caller.
    """
    outcomes: set[str] = set()
    if thorough:
        verify(BytesSource(data, NAME), CHECKS, LIMITS)
    try:
        reader = open_puffin(BytesSource(data, NAME), limits=LIMITS)
        blobs = list(reader.metadata.blobs)
        stored = list(reader.read_many_stored(blobs))
    except RookeryError as error:
        outcomes.add(site(error))
        return outcomes
    outcomes.add(READ)
    for blob, frame in stored:
        try:
            payload = reader.decompress(blob, frame)
            if blob.type == DELETION_VECTOR_V1:
                vector = DeletionVector.from_blob(blob, payload, NAME)
                _check(len(vector.positions()) == vector.cardinality, "as many positions as it says")
            elif blob.type == THETA_V1:
                sketch = ThetaSketch.decode(payload, place=Place(NAME, blob.offset))
                estimate = sketch.estimate()
                _check(estimate.low <= estimate.value <= estimate.high, "bounds in order")
            elif blob.type == HLL_V1:
                counted = HllSketch.decode(payload, place=Place(NAME, blob.offset))
                estimate = counted.merge(counted).estimate()
                _check(estimate.low <= estimate.value <= estimate.high, "bounds in order")
        except RookeryError as error:
            outcomes.add(site(error))
    return outcomes


def site(error: RookeryError) -> str:
    """Name the line that raised it, which is what tells one outcome from another."""
    _check(isinstance(error, FormatError), f"a format error, not {error!r}")
    assert isinstance(error, FormatError)
    _check(bool(error.place.file == NAME and error.expected and error.found), f"a full account, not {error}")
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    return f"{type(error).__name__} at {trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"


def _check(kept: bool, promise: str) -> None:
    if not kept:
        raise AssertionError(f"expected {promise}")
