"""Writing: whole files or none, bounded memory, and sizes that are true."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.io import BytesSink, LocalSink
from rookery.model import IN_MEMORY, RookeryError, StorageError, UsageError
from rookery.puffin import (
    DELETION_VECTOR_V1,
    Blob,
    DeletionVector,
    UnsupportedPuffinError,
    Writer,
    codecs,
    open_puffin,
)
from rookery.version import __version__
from tests.puffin.builders import puffin, traced_memory

MIB = 1 << 20


class FailingSink(LocalSink):
    """A file that refuses the write with that number."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(str(path))
        self._left = number

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        if self._left == 0:
            raise OSError("the cable was pulled")
        self._left -= 1
        super()._append(data)


class CallersError(Exception):
    """What a caller's own code may raise between two blobs."""


# -- whole or not at all


def test_nothing_is_there_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    with Writer(path) as writer:
        writer.add(Blob("a", b"payload"))
        assert not path.exists()
    assert [found.name for found in tmp_path.iterdir()] == ["a.puffin"]
    with open_puffin(path) as reader:
        assert reader.read(reader.blob(0)) == b"payload"


def test_an_error_between_two_blobs_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with Writer(tmp_path / "a.puffin") as writer:
            writer.add(Blob("a", b"payload"))
            raise CallersError

    with pytest.raises(CallersError):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_write_that_fails_leaves_nothing(tmp_path: Path, number: int) -> None:
    """Of the header, of the blob, of the footer."""
    with (
        pytest.raises(StorageError, match="the cable was pulled") as caught,
        Writer(FailingSink(tmp_path / "a.puffin", number)) as writer,
    ):
        writer.add(Blob("a", b"payload"))
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond a mebibyte: the nearest thing to a full disk that a test can bring about."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing(tmp_path: Path, full_disk: None) -> None:
    # Blobs shorter than the file's buffer, so that bytes are still waiting when the sink is dropped.
    def write() -> None:
        with Writer(tmp_path / "a.puffin", codec="none") as writer:
            for _ in range(1000):
                writer.add(Blob("a", bytes(3000)))

    with pytest.raises(StorageError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_footer_that_is_no_json_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(TypeError),
        Writer(tmp_path / "a.puffin", extra={"later": object()}) as writer,
    ):
        writer.add(Blob("a", b"payload"))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"mine")
    with pytest.raises(StorageError, match="exists already") as caught:
        Writer(path)
    assert "overwrite" in (caught.value.hint or "")
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"

    def write() -> None:
        with Writer(path):
            path.write_bytes(b"theirs")

    with pytest.raises(StorageError, match="exists already"):
        write()
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_overwriting_replaces_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"old")
    with Writer(path, overwrite=True) as writer:
        writer.add(Blob("new", b""))
        assert path.read_bytes() == b"old"
    with open_puffin(path) as reader:
        assert reader.blob(0).type == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_overwrite_keeps_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"old")
    with pytest.raises(CallersError), Writer(path, overwrite=True):
        raise CallersError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# -- memory


def test_memory_holds_one_blob_not_all(tmp_path: Path) -> None:
    size, count = 2 * MIB, 50
    with Writer(tmp_path / "a.puffin") as writer, traced_memory() as peak:
        for _ in range(count):
            writer.add(Blob("noise", os.urandom(size)))  # noise, as it does not compress
        assert peak() < 4 * size
    assert writer.written.size > count * size


# -- what is written


def test_the_sizes_are_the_files(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    for compress_footer in (False, True):
        with Writer(path, overwrite=True, compress_footer=compress_footer) as writer:
            added = [writer.add(Blob("a", b"x" * 1000)), writer.add(Blob("b", b"y" * 1000, codec="lz4"))]
        written = writer.written
        with open_puffin(path, file_size=written.size, footer_size=written.footer_size) as reader:
            assert written.size == path.stat().st_size
            assert written.footer_size == reader.footer_size
            assert written.location == str(path)
            assert reader.metadata.blobs == added == list(written.metadata.blobs)
            assert reader.metadata.properties == written.metadata.properties


def test_the_writer_signs() -> None:
    def signed(**options: object) -> object:
        return open_puffin(puffin(**options)).metadata.properties.get("created-by")

    assert signed() == f"Rookery version {__version__}"
    assert signed(created_by="Trino version 381") == "Trino version 381"
    assert signed(created_by=None) is None
    assert signed(created_by=None, properties={"created-by": "another"}) == "another"


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("payload", [b"", b"x", b"x" * 100_000], ids=len)
def test_frames_carry_their_content_size(codec: str, payload: bytes) -> None:
    data = puffin(Blob("a", payload), codec=codec, compress_footer=True)
    reader = open_puffin(data)
    stored = reader.read_stored(reader.blob(0))
    assert codecs.CODECS[codec].content_size(stored) == len(payload)
    footer = data[reader.footer_start + 4 : -12]
    assert codecs.CODECS["lz4"].content_size(footer) == len(codecs.decompress("lz4", footer, IN_MEMORY, MIB))


def test_a_deletion_vector_is_never_compressed() -> None:
    blob = DeletionVector.of_range(0, 10_000).blob("s3://bucket/data.parquet")
    reader = open_puffin(puffin(blob, codec="zstd"))
    (found,) = reader.metadata.blobs
    assert found.codec is None
    assert (found.snapshot_id, found.sequence_number) == (-1, -1)
    assert reader.read_stored(found) == blob.payload
    for codec in ("zstd", "lz4"):
        with pytest.raises(UsageError, match="never compressed"):
            puffin(Blob(DELETION_VECTOR_V1, blob.payload, codec=codec))


# -- misuse


def test_unknown_codecs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown codec 'gzip'") as caught:
        Writer(tmp_path / "a.puffin", codec="gzip")
    assert "zstd, lz4" in (caught.value.hint or "")
    with pytest.raises(UnsupportedPuffinError), Writer(tmp_path / "a.puffin") as writer:
        writer.add(Blob("a", b"", codec="gzip"))
    assert list(tmp_path.iterdir()) == []


def test_a_finished_writer_takes_no_more() -> None:
    sink = BytesSink()
    with Writer(sink) as writer:
        written = writer.finish()
        with pytest.raises(UsageError, match="finished"):
            writer.add(Blob("a", b""))
        with pytest.raises(UsageError, match="finished"):
            writer.finish()
    assert sink.data is not None
    assert len(sink.data) == written.size


@pytest.mark.parametrize(
    "blob",
    [
        Blob("a", b"", fields=(2**31,)),
        Blob("a", b"", fields=(True,)),
        Blob("a", b"", snapshot_id=2**63),
        Blob("a", b"", sequence_number=-(2**63) - 1),
        Blob("a", b"", properties={"ndv": 7}),  # type: ignore[dict-item]
        Blob(None, b""),  # type: ignore[arg-type]
    ],
)
def test_what_no_reader_would_take_is_not_written(blob: Blob) -> None:
    with pytest.raises(UsageError, match="cannot be described") as caught:
        puffin(blob)
    assert caught.value.hint


def test_properties_of_a_file_are_strings(tmp_path: Path) -> None:
    with pytest.raises(RookeryError, match="properties"):
        Writer(tmp_path / "a.puffin", properties={"rows": 7})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
