"""The reports about Puffin files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api import puffin_files
from rookery.io import BytesSink
from rookery.model import CheckOutcome, Estimate, FormatError, StorageError, UsageError
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, Writer, open_puffin
from rookery.sidecar.checksums import ChecksumWriter
from rookery.sketch.bitmap import BitmapBuilder
from rookery.sketch.blob_types import BITMAP_V1, BLOOM_MATRIX_V1, HLL_V1, TABLE_THETA_V1
from rookery.sketch.bloom import BLOCK_SIZE, BloomFilter
from rookery.sketch.bloom_matrix import BloomMatrix
from tests.samples import (
    DATA_FILE,
    UNKNOWN_PAYLOAD,
    UNKNOWN_TYPE,
    hll_payload,
    theta_payload,
    write_sample,
    write_with_bad_blob,
)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample.puffin")


def test_inspect(sample: Path) -> None:
    view = puffin_files.inspect(sample)
    assert not view.has_findings
    assert (view.file, view.size) == (str(sample), sample.stat().st_size)
    assert not view.footer_compressed
    assert view.properties["note"] == "a sample"
    theta, vector, unknown = view.blobs
    assert theta.summary == {"ndv": Estimate.exact(1000), "hashes": 1000, "theta": 1.0}
    assert vector.summary == {
        "cardinality": 3,
        "data_file": DATA_FILE,
        "first": 1,
        "last": 4_000_000_000,
    }
    assert unknown.summary is None
    assert [blob.number for blob in view.blobs] == [0, 1, 2]
    assert [blob.metadata.type for blob in view.blobs] == [THETA_V1, DELETION_VECTOR_V1, UNKNOWN_TYPE]


def test_inspect_indexes(tmp_path: Path) -> None:
    builder = BitmapBuilder("int", [3, 2])
    builder.add(pa.array([5, 5, None], pa.int32()), 0, 0)
    builder.cover(0)
    (matrix,) = BloomMatrix.of({1: BloomFilter.from_bytes(bytes(4 * BLOCK_SIZE))}, 2, 0.01)
    path = tmp_path / "segment.puffin"
    with ChecksumWriter(str(path)) as writer:
        writer.add(Blob(BITMAP_V1, builder.result().encode(), (1,), 7, 1))
        writer.add(Blob(BLOOM_MATRIX_V1, matrix.encode(), (1,), 7, 1))
    bitmap, bloom = (blob.summary for blob in puffin_files.inspect(path).blobs)
    assert bitmap == {"files": 2, "covered": 1, "values": 1, "nulls": 1}
    assert bloom == {"files": 2, "covered": 1, "blocks": 4, "false_positive_rate": 0.01}


@pytest.mark.parametrize(
    ("values", "mode", "ndv"), [(0, "LIST", 0), (5, "LIST", 5), (300, "SET", 300), (20_000, "HLL", 20_000)]
)
def test_inspect_and_verify_hll(tmp_path: Path, values: int, mode: str, ndv: int) -> None:
    payload = hll_payload(values)
    path = tmp_path / "hll.puffin"
    with Writer(path) as writer:
        writer.add(Blob(HLL_V1, payload, (1,), 7, 1))
        writer.add(Blob(HLL_V1, payload[:-1], (1,), 7, 1))
    good, bad = puffin_files.inspect(path).blobs
    assert good.summary is not None
    estimate = good.summary["ndv"]
    assert isinstance(estimate, Estimate)
    assert estimate.low <= ndv <= estimate.high
    assert {**good.summary, "ndv": 0} == {"ndv": 0, "registers": 4096, "kind": "HLL_8", "mode": mode}
    assert bad.problem is not None
    assert bad.problem.startswith(f"{path}, byte ")
    rules = [
        (check.subject, check.outcome)
        for check in puffin_files.verify(path).checks
        if check.rule == "an HLL sketch"
    ]
    assert rules == [("blob 0", CheckOutcome.OK), ("blob 1", CheckOutcome.FINDING)]


@pytest.mark.parametrize(("stated", "kept"), [("50000", False), ("51674", True), ("many", False)])
def test_verify_ndv_of_hll(tmp_path: Path, stated: str, kept: bool) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.add(Blob(HLL_V1, hll_payload(50_000), (1,), 7, 1, properties={"ndv": stated}))
    assert puffin_files.verify(tmp_path / "a").has_findings is not kept


def test_verify_decodes_blobs_of_ours(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.add(Blob(TABLE_THETA_V1, theta_payload(), (1,), 7, 1))
        writer.add(Blob(TABLE_THETA_V1, b"nothing of the kind", (1,), 7, 1))
    checks = [
        check
        for check in puffin_files.verify(tmp_path / "a").checks
        if check.rule == "payload can be decoded"
    ]
    assert [check.outcome for check in checks] == [CheckOutcome.OK, CheckOutcome.FINDING]


def test_inspect_bytes_and_a_compressed_footer(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.puffin", compress_footer=True)
    view = puffin_files.inspect(path.read_bytes())
    assert view.footer_compressed
    assert view.blobs == puffin_files.inspect(path).blobs


def test_inspect_shows_the_good_blobs_beside_the_bad(tmp_path: Path) -> None:
    view = puffin_files.inspect(write_with_bad_blob(tmp_path / "bad.puffin"))
    assert view.has_findings
    bad, unknown = view.blobs
    assert bad.summary is None
    assert "bad.puffin" in (bad.problem or "")
    assert unknown.problem is None


def test_inspect_of_empty_blobs_at_one_offset() -> None:
    sink = BytesSink()
    with Writer(sink, codec="none") as writer:
        writer.add(Blob(THETA_V1, b""))
        writer.add(Blob(THETA_V1, theta_payload()))
    assert sink.data is not None
    empty, full = puffin_files.inspect(sink.data).blobs
    assert empty.problem
    assert full.problem is None


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_payload(tmp_path: Path, codec: str) -> None:
    path = write_sample(tmp_path / "a.puffin", codec=codec)
    assert puffin_files.payload(path, 0) == theta_payload()
    assert puffin_files.payload(path, 2) == UNKNOWN_PAYLOAD
    with open_puffin(path) as reader:
        assert puffin_files.payload(path, 2, stored=True) == reader.read_stored(reader.blob(2))


@pytest.mark.parametrize("number", [-1, 3, 99])
def test_payload_of_no_blob(sample: Path, number: int) -> None:
    with pytest.raises(UsageError, match=f"no blob {number}") as caught:
        puffin_files.payload(sample, number)
    assert caught.value.hint == "it has 3: 0 to 2"


def test_verify(sample: Path) -> None:
    report = puffin_files.verify(sample)
    assert not report.has_findings
    assert {check.subject for check in report.checks} == {"file", "footer", "blob 0", "blob 1", "blob 2"}
    notes = [check for check in report.checks if check.outcome is CheckOutcome.NOTE]
    assert [check.subject for check in notes] == ["blob 2"]  # of an unknown type


def test_verify_finds_what_is_bad(tmp_path: Path) -> None:
    report = puffin_files.verify(write_with_bad_blob(tmp_path / "bad.puffin"))
    found = {check.subject for check in report.checks if check.outcome is CheckOutcome.FINDING}
    assert found == {"blob 0", "blob 1"}


def test_verify_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a Puffin file, and long enough to be taken for one")
    report = puffin_files.verify(tmp_path / "text")
    assert [check.outcome for check in report.checks] == [CheckOutcome.FINDING]


def test_copy_is_byte_for_byte(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.puffin"
    report = puffin_files.copy(str(sample), str(out))
    assert (report.blobs_in, report.blobs_out) == (3, 3)
    assert (report.bytes_in, report.bytes_out) == (sample.stat().st_size, out.stat().st_size)
    assert out.read_bytes() == sample.read_bytes()


def test_copy_selects(sample: Path, tmp_path: Path) -> None:
    def types(name: str, **options: object) -> list[str]:
        puffin_files.copy(str(sample), str(tmp_path / name), **options)  # type: ignore[arg-type]
        with open_puffin(tmp_path / name) as reader:
            return [blob.type for blob in reader.metadata.blobs]

    assert types("number", numbers=[2, 0]) == [THETA_V1, UNKNOWN_TYPE]
    assert types("type", types=[DELETION_VECTOR_V1]) == [DELETION_VECTOR_V1]
    assert types("drop", dropped_types=[THETA_V1]) == [DELETION_VECTOR_V1, UNKNOWN_TYPE]
    assert types("all three", numbers=[0, 1], types=[THETA_V1, UNKNOWN_TYPE], dropped_types=[THETA_V1]) == []


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_copy_recompresses(sample: Path, tmp_path: Path, codec: str) -> None:
    puffin_files.copy(str(sample), str(tmp_path / "out"), codec=codec, compress_footer=True)
    with open_puffin(tmp_path / "out") as reader, open_puffin(sample) as original:
        stated = None if codec == "none" else codec
        assert [blob.codec for blob in reader.metadata.blobs] == [stated, None, stated]
        assert [reader.read(blob) for blob in reader.metadata.blobs] == [
            original.read(blob) for blob in original.metadata.blobs
        ]
        assert reader.tail.flags == 1


def test_copy_refuses(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="onto itself"):
        puffin_files.copy(str(sample), str(sample), overwrite=True)
    with pytest.raises(UsageError, match="no blob 7") as caught:
        puffin_files.copy(str(sample), str(tmp_path / "out"), numbers=[1, 7])
    assert caught.value.hint == "the file has 3: 0 to 2"
    assert not (tmp_path / "out").exists()


def test_copy_overwrites_only_when_asked(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")
    with pytest.raises(StorageError, match="exists already"):
        puffin_files.copy(str(sample), str(out))
    assert out.read_bytes() == b"old"
    puffin_files.copy(str(sample), str(out), overwrite=True)
    assert out.read_bytes() == sample.read_bytes()


def test_copy_of_a_bad_blob_leaves_nothing(tmp_path: Path) -> None:
    bad = write_with_bad_blob(tmp_path / "bad.puffin")
    with pytest.raises(FormatError):
        puffin_files.copy(str(bad), str(tmp_path / "out"), codec="lz4")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.puffin"]
