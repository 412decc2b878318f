"""Verification: every check has a file in which it, and nothing else, fails."""

from __future__ import annotations

import datasketches
import pytest

from rookery.api.puffin_files import VerifyReport, verify
from rookery.model import CheckOutcome, findings
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, DeletionVector, Limits
from rookery.sketch import ThetaSketch
from tests.puffin.builders import (
    assemble,
    described,
    lz4_unsized,
    puffin,
    sealed,
    source,
    vector_of,
    with_stored,
    zstd_claiming,
    zstd_unsized,
)

VECTOR = DeletionVector.of([1, 2, 3])
VECTOR_PROPERTIES = {"referenced-data-file": "data.parquet", "cardinality": "3"}
OPENS = ("file", "opens as a Puffin file")


def sketch_of(count: int) -> bytes:
    sketch = datasketches.update_theta_sketch(5)
    for value in range(count):
        sketch.update(value)
    return sketch.compact().serialize()


def vector_file(payload: bytes = VECTOR.encode(), **changes: object) -> bytes:
    keys = {
        "type": DELETION_VECTOR_V1,
        "snapshot_id": -1,
        "sequence_number": -1,
        "properties": VECTOR_PROPERTIES,
    }
    return with_stored((payload, keys | changes))


def theta_file(payload: bytes, **properties: str) -> bytes:
    return with_stored((payload, {"type": THETA_V1, "properties": properties}))


def failed(report: VerifyReport) -> list[tuple[str, str]]:
    return [(check.subject, check.rule) for check in findings(report.checks)]


# -- all is well


@pytest.mark.parametrize("compress_footer", [False, True])
@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_a_good_file_passes(codec: str, compress_footer: bool) -> None:
    estimate = ThetaSketch.decode(sketch_of(5000)).estimate().value
    data = puffin(
        VECTOR.blob("data.parquet"),
        Blob(THETA_V1, sketch_of(20), properties={"ndv": "20"}),
        Blob(THETA_V1, sketch_of(5000), properties={"ndv": str(int(estimate))}),
        Blob(THETA_V1, sketch_of(0)),
        Blob("opaque", b""),
        Blob("opaque", b"text" * 100),
        codec=codec,
        compress_footer=compress_footer,
    )
    report = verify(source(data))
    assert not report.has_findings
    assert failed(report) == []
    assert report.file == source(data).name
    rules = {check.rule for check in report.checks if check.outcome is CheckOutcome.OK}
    assert {
        "magic at the start",
        "magic before and after the footer",
        "flags known",
        "payload size fits the file",
        "UTF-8 JSON with blobs and properties",
        "names its writer in created-by",
        "blobs lie between header and footer",
        "no two blobs overlap",
        "no bytes that belong to no blob",
        "metadata complete",
        "no compression codec",
        "snapshot id -1",
        "sequence number -1",
        "the property referenced-data-file",
        "the property cardinality, a number",
        "length, magic, CRC, keys and bitmaps",
        "cardinality matches the metadata",
        "a compact theta sketch",
        "ndv is a number",
        "ndv matches the sketch's estimate",
    } <= rules
    assert ("LZ4 frame states its content size" in rules) == compress_footer
    assert ("frame states its content size" in rules) == (codec != "none")


def test_the_parts_of_a_file_by_hand_pass() -> None:
    """So that the tests below fail for the reason they mean."""
    for data in (vector_file(), theta_file(sketch_of(9), ndv="9"), with_stored((b"x", {}))):
        assert failed(verify(data)) == []


def test_an_unknown_type_is_only_noted() -> None:
    report = verify(puffin(Blob("from-the-future", b"?")))
    assert not report.has_findings
    (note,) = [check for check in report.checks if check.outcome is CheckOutcome.NOTE]
    assert "from-the-future" in note.detail


def test_a_file_that_nobody_signed_is_only_noted() -> None:
    report = verify(puffin(created_by=None))
    assert not report.has_findings
    (note,) = [check for check in report.checks if check.outcome is CheckOutcome.NOTE]
    assert note.rule == "names its writer in created-by"


def test_empty_blobs_leave_no_gap() -> None:
    blobs = [described(4, 5), described(4, 0), described(6, 0), described(9, 0)]
    assert failed(verify(assemble({"blobs": blobs}, b"hello"))) == []


# -- one thing is wrong


FRAME = zstd_claiming(b"content", len(b"content"))
GOOD = with_stored((b"hello", {}))
FILES: dict[str, tuple[bytes, tuple[str, str]]] = {
    "nothing": (b"", OPENS),
    "no magic at the start": (b"XXXX" + GOOD[4:], OPENS),
    "no magic at the end": (GOOD[:-4] + b"XXXX", OPENS),
    "no magic before the footer": (assemble({"blobs": []}, before=b"XXXX"), OPENS),
    "an unknown flag": (assemble({"blobs": []}, flags=2), OPENS),
    "a negative size": (assemble({"blobs": []}, payload_size=-1), OPENS),
    "no JSON": (assemble(b"nothing of the sort"), OPENS),
    "no blobs": (assemble({}), OPENS),
    "a blob outside": (assemble({"blobs": [described(4, 99)]}), OPENS),
    "an overlap": (assemble({"blobs": [described(4, 3), described(6, 3)]}, b"hello"), OPENS),
    "an LZ4 footer of unstated size": (
        assemble(lz4_unsized(b'{"blobs":[]}'), flags=1),
        ("footer", "LZ4 frame states its content size"),
    ),
    "a gap": (
        assemble({"blobs": [described(4, 2), described(7, 2)]}, b"hello"),
        ("file", "no bytes that belong to no blob"),
    ),
    "bytes behind the last blob": (
        assemble({"blobs": []}, b"hello"),
        ("file", "no bytes that belong to no blob"),
    ),
    "no type": (assemble({"blobs": [described(type=...)]}), ("blob 0", "metadata complete")),
    "no zstd frame": (with_stored((b"?", {"compression_codec": "zstd"})), ("blob 0", "one whole zstd frame")),
    "no LZ4 frame": (with_stored((b"?", {"compression_codec": "lz4"})), ("blob 0", "one whole lz4 frame")),
    "two frames": (
        with_stored((FRAME + FRAME, {"compression_codec": "zstd"})),
        ("blob 0", "one whole zstd frame"),
    ),
    "an unknown codec": (
        with_stored((b"?", {"compression_codec": "brotli"})),
        ("blob 0", "one whole brotli frame"),
    ),
    "a blob beyond the limit": (with_stored((bytes(2000), {})), ("blob 0", "not compressed")),
    "a zstd frame of unstated size": (
        with_stored((zstd_unsized(b"x" * 99), {"compression_codec": "zstd"})),
        ("blob 0", "frame states its content size"),
    ),
    "an LZ4 frame of unstated size": (
        with_stored((b"fine", {}), (lz4_unsized(b"x" * 99), {"compression_codec": "lz4"})),
        ("blob 1", "frame states its content size"),
    ),
    "a compressed vector": (
        vector_file(
            zstd_claiming(VECTOR.encode(), len(VECTOR.encode())),
            compression_codec="zstd",
        ),
        ("blob 0", "no compression codec"),
    ),
    "a vector with a snapshot": (vector_file(snapshot_id=5), ("blob 0", "snapshot id -1")),
    "a vector with a sequence number": (vector_file(sequence_number=5), ("blob 0", "sequence number -1")),
    "a vector of no file": (
        vector_file(properties={"cardinality": "3"}),
        ("blob 0", "the property referenced-data-file"),
    ),
    "a vector of no cardinality": (
        vector_file(properties={"referenced-data-file": "x"}),
        ("blob 0", "the property cardinality, a number"),
    ),
    "a vector of wrong cardinality": (
        vector_file(properties=VECTOR_PROPERTIES | {"cardinality": "4"}),
        ("blob 0", "cardinality matches the metadata"),
    ),
    "a vector with a wrong CRC": (
        vector_file(VECTOR.encode()[:-1] + b"?"),
        ("blob 0", "length, magic, CRC, keys and bitmaps"),
    ),
    "a vector with a wrong key": (
        vector_file(sealed(vector_of([(2**31, b"")]))),
        ("blob 0", "length, magic, CRC, keys and bitmaps"),
    ),
    "no sketch": (theta_file(b"no sketch"), ("blob 0", "a compact theta sketch")),
    "an ndv in words": (theta_file(sketch_of(3), ndv="three"), ("blob 0", "ndv is a number")),
    "a negative ndv": (theta_file(sketch_of(3), ndv="-3"), ("blob 0", "ndv is a number")),
    "a wrong ndv": (theta_file(sketch_of(3), ndv="5"), ("blob 0", "ndv matches the sketch's estimate")),
}


@pytest.mark.parametrize("wrong", FILES)
def test_a_check_that_fails(wrong: str) -> None:
    data, expected = FILES[wrong]
    report = verify(source(data), limits=Limits(footer=1000, blob=1500))
    assert report.has_findings
    assert failed(report) == [expected]


def test_one_bad_blob_does_not_hide_the_next() -> None:
    data = with_stored(
        (b"?", {"compression_codec": "zstd"}), (b"fine", {}), (b"?", {"fields": "none"}), (b"fine", {})
    )
    report = verify(data)
    assert failed(report) == [("blob 0", "one whole zstd frame"), ("blob 2", "metadata complete")]
    assert ("blob 3", CheckOutcome.OK) in [(check.subject, check.outcome) for check in report.checks]


def test_a_finding_says_where() -> None:
    (check,) = findings(verify(source(FILES["no zstd frame"][0])).checks)
    assert source(b"").name in check.detail
    assert "byte 4" in check.detail
