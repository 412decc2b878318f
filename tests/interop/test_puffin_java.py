"""Puffin files between Rookery and Iceberg Java, in both directions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from rookery.io import BytesSink
from rookery.puffin import Blob, BlobMetadata, DeletionVector, FileMetadata, Writer, WrittenFile, open_puffin
from tests.interop.java import IcebergJava

PROPERTIES = {"created-by": "tests", "größe": "3 µm", "鳥": '🐧 "quoted" \\ / \t\n'}
BLOBS = (
    Blob("first", b"a payload", fields=(1,), snapshot_id=7, sequence_number=3),
    Blob("no-fields", bytes(range(256)) * 40, properties={"ndv": "256", "naïve": "ß → ∞"}),
    Blob("empty", b"", fields=(2, 3, 2**31 - 1), snapshot_id=2**63 - 1, sequence_number=2**62),
    Blob("first", b"x" * 100_000, fields=(-1,), snapshot_id=-(2**63)),
)

Texts = st.SearchStrategy[str]


def maps(texts: Texts) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(texts, texts, max_size=3)


def blob_lists(texts: Texts) -> st.SearchStrategy[list[Blob]]:
    longs = st.integers(-(2**63), 2**63 - 1)
    blob = st.builds(
        Blob,
        type=texts,
        payload=st.binary(max_size=200),
        fields=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(tuple),
        snapshot_id=longs,
        sequence_number=longs,
        codec=st.sampled_from([None, "none", "zstd"]),
        properties=maps(texts),
    )
    return st.lists(blob, max_size=5)


any_text = st.text(max_size=12)
# Jackson writes the escapes of control characters with upper-case hexadecimal digits, msgspec with lower.
printable = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12)
codecs = st.sampled_from(["none", "zstd"])
few = settings(max_examples=30)


def write(
    blobs: tuple[Blob, ...] | list[Blob], properties: dict[str, str], codec: str
) -> tuple[bytes, WrittenFile]:
    sink = BytesSink()
    with Writer(sink, codec=codec, properties=properties, created_by=None) as writer:
        for blob in blobs:
            writer.add(blob)
    assert sink.data is not None
    return sink.data, writer.written


def expected(blobs: tuple[Blob, ...] | list[Blob], found: FileMetadata, codec: str) -> list[BlobMetadata]:
    """The metadata that the blobs must have; offset and length are known where nothing is compressed."""
    described, offset = [], 4
    for blob, placed in zip(blobs, found.blobs, strict=True):
        name = blob.codec or codec
        length = len(blob.payload) if name == "none" else placed.length
        described.append(
            BlobMetadata(
                blob.type,
                blob.fields,
                blob.snapshot_id,
                blob.sequence_number,
                offset,
                length,
                None if name == "none" else name,
                blob.properties,
            )
        )
        offset += length
    return described


def check_java_to_rookery(
    java: IcebergJava, blobs: tuple[Blob, ...] | list[Blob], properties: dict[str, str], codec: str
) -> None:
    file = java.write_puffin(blobs, properties, codec)
    with open_puffin(file.data) as reader:
        assert reader.metadata.properties == properties
        assert list(reader.metadata.blobs) == expected(blobs, reader.metadata, codec)
        assert [reader.read(blob) for blob in reader.metadata.blobs] == [blob.payload for blob in blobs]
        assert (reader.size, reader.footer_size) == (file.size, file.footer_size)


def check_rookery_to_java(
    java: IcebergJava, blobs: tuple[Blob, ...] | list[Blob], properties: dict[str, str], codec: str
) -> None:
    data, written = write(blobs, properties, codec)
    assert written.size == len(data)
    for known in (None, written):  # with the sizes from a catalog, and without
        metadata, payloads = java.read_puffin(data, known)
        assert metadata.properties == properties
        assert list(metadata.blobs) == expected(blobs, metadata, codec) == list(written.metadata.blobs)
        assert payloads == [blob.payload for blob in blobs]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("properties", [{}, PROPERTIES], ids=["bare", "properties"])
@pytest.mark.parametrize("blobs", [(), BLOBS[:1], BLOBS], ids=["empty", "one", "several"])
class TestBothWays:
    def test_java_to_rookery(
        self, java: IcebergJava, blobs: tuple[Blob, ...], properties: dict[str, str], codec: str
    ) -> None:
        check_java_to_rookery(java, blobs, properties, codec)

    def test_rookery_to_java(
        self, java: IcebergJava, blobs: tuple[Blob, ...], properties: dict[str, str], codec: str
    ) -> None:
        check_rookery_to_java(java, blobs, properties, codec)


@few
@given(blobs=blob_lists(any_text), properties=maps(any_text), codec=codecs)
def test_any_java_file_reads(
    java: IcebergJava, blobs: list[Blob], properties: dict[str, str], codec: str
) -> None:
    check_java_to_rookery(java, blobs, properties, codec)


@few
@given(blobs=blob_lists(any_text), properties=maps(any_text), codec=codecs)
def test_any_rookery_file_reads(
    java: IcebergJava, blobs: list[Blob], properties: dict[str, str], codec: str
) -> None:
    check_rookery_to_java(java, blobs, properties, codec)


@few
@given(blobs=blob_lists(printable), properties=maps(printable))
def test_uncompressed_files_are_the_same_bytes(
    java: IcebergJava, blobs: list[Blob], properties: dict[str, str]
) -> None:
    plain = [replace(blob, codec=None) for blob in blobs]
    data, written = write(plain, properties, "none")
    file = java.write_puffin(plain, properties)
    assert data == file.data
    assert (written.size, written.footer_size) == (file.size, file.footer_size)


def test_escapes_differ_in_case_only(java: IcebergJava) -> None:
    properties = {"control": "".join(map(chr, range(32)))}
    data, _ = write([], properties, "none")
    file = java.write_puffin([], properties)
    assert data != file.data
    assert data.lower() == file.data.lower()


def test_mixed_codecs(java: IcebergJava) -> None:
    blobs = [replace(blob, codec=codec) for blob in BLOBS for codec in ("none", "zstd", None)]
    check_java_to_rookery(java, blobs, {}, "zstd")
    check_rookery_to_java(java, blobs, {}, "zstd")


def test_a_deletion_vector_file_is_the_same_bytes(java: IcebergJava) -> None:
    blobs = [DeletionVector.of([1, 2, 3]).blob("file:/a.parquet"), DeletionVector.of([0]).blob("file:/ü")]
    data, _ = write(blobs, PROPERTIES, "zstd")  # which the writer does not apply to deletion vectors
    assert data == java.write_puffin(blobs, PROPERTIES).data


def test_default_properties_reach_java(java: IcebergJava, tmp_path: Path) -> None:
    with Writer(tmp_path / "a.puffin") as writer:
        writer.add(BLOBS[0])
    metadata, payloads = java.read_puffin((tmp_path / "a.puffin").read_bytes(), writer.written)
    assert list(metadata.properties) == ["created-by"]
    assert metadata.properties["created-by"].startswith("Rookery")
    assert payloads == [BLOBS[0].payload]


@pytest.mark.parametrize("options", [{"codec": "lz4"}, {"compress_footer": True}], ids=["blobs", "footer"])
def test_java_has_no_lz4(java: IcebergJava, options: dict[str, Any]) -> None:
    """Why neither is a default of ours: when this fails, Java has learned it."""
    sink = BytesSink()
    with Writer(sink, **options) as writer:
        writer.add(BLOBS[0])
    with pytest.raises(PySparkException, match="Unsupported codec: LZ4"):
        java.read_puffin(sink.data or b"")
