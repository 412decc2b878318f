"""The footer's JSON: its order, its openness, its laziness."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings

from rookery.puffin import Blob, BlobMetadata, PuffinError, open_puffin
from tests.puffin.builders import NAME, assemble, described, puffin, source
from tests.puffin.strategies import EXTRA, JSON

EMPTY_FILE = b'PFA1PFA1{"blobs":[]}\x0c\x00\x00\x00\x00\x00\x00\x00PFA1'


def payload_of(data: bytes) -> bytes:
    reader = open_puffin(data)
    return data[reader.footer_start + 4 : -12]


def test_the_empty_file_to_the_byte() -> None:
    assert puffin(created_by=None) == EMPTY_FILE
    assert list(open_puffin(EMPTY_FILE).metadata.blobs) == []


def test_the_empty_file_with_a_compressed_footer() -> None:
    data = puffin(created_by=None, compress_footer=True)
    assert data[-8:-4] == b"\x01\x00\x00\x00"
    reader = open_puffin(data)
    assert list(reader.metadata.blobs) == []
    assert reader.metadata.properties == {}


def test_a_file_to_the_byte() -> None:
    blob = Blob("a", b"xyz", (1, 2), 3, 4, "none", {"k": "v"}, {"later": [1]})
    payload = (
        b'{"blobs":[{"type":"a","fields":[1,2],"snapshot-id":3,"sequence-number":4,"offset":4,"length":3,'
        b'"properties":{"k":"v"},"later":[1]}],"properties":{"created-by":"me"},"newer":null}'
    )
    size = len(payload).to_bytes(4, "little")
    expected = b"PFA1xyzPFA1" + payload + size + b"\x00\x00\x00\x00PFA1"
    assert puffin(blob, created_by="me", extra={"newer": None}) == expected


def test_the_codec_stands_between_length_and_properties() -> None:
    data = puffin(Blob("a", b"xyz", codec="zstd", properties={"k": "v"}), created_by=None)
    (blob,) = json.loads(payload_of(data))["blobs"]
    assert list(blob) == [
        "type",
        "fields",
        "snapshot-id",
        "sequence-number",
        "offset",
        "length",
        "compression-codec",
        "properties",
    ]


@given(file_extra=EXTRA, blob_extra=EXTRA)
@settings(max_examples=60)
def test_unknown_keys_are_kept(file_extra: dict[str, object], blob_extra: dict[str, object]) -> None:
    metadata = open_puffin(puffin(Blob("a", b"", extra=blob_extra), extra=file_extra)).metadata
    assert metadata.extra == file_extra
    assert metadata.blobs[0].extra == blob_extra


@given(value=JSON)
@settings(max_examples=60)
def test_any_json_under_an_unknown_key_is_read(value: object) -> None:
    data = assemble({"blobs": [described(later=value)], "later": value})
    metadata = open_puffin(data).metadata
    assert metadata.extra == {"later": value}
    assert metadata.blobs[0].extra == {"later": value}


def test_an_extra_key_never_shadows_a_known_one() -> None:
    shadow = {"blobs": [], "properties": {"x": "y"}, "type": "z", "offset": 0, "fine": 1}
    metadata = open_puffin(puffin(Blob("a", b"p", extra=shadow), extra=shadow, created_by=None)).metadata
    assert (metadata.blobs[0].type, metadata.blobs[0].offset) == ("a", 4)
    assert metadata.properties == {}
    # A name is known in its own place only.
    assert metadata.extra == {"type": "z", "offset": 0, "fine": 1}
    assert metadata.blobs[0].extra == {"blobs": [], "fine": 1}


def test_a_broken_blob_does_not_hide_the_others() -> None:
    blobs = [described(), described(type=...), described(type="third")]
    metadata = open_puffin(source(assemble({"blobs": blobs}))).metadata
    assert metadata.blobs[0].type == "opaque"
    assert metadata.blobs[2].type == "third"
    with pytest.raises(PuffinError) as caught:
        metadata.blobs[1]
    assert caught.value.place.file == NAME
    assert "blob 1" in caught.value.expected
    assert "`type`" in caught.value.found


def test_blobs_are_a_sequence() -> None:
    blobs = open_puffin(puffin(*(Blob(name, b"") for name in "abcd"))).metadata.blobs
    assert len(blobs) == 4
    assert blobs[-1].type == "d"
    assert [blob.type for blob in blobs[1:3]] == ["b", "c"]
    assert [blob.type for blob in reversed(blobs)] == ["d", "c", "b", "a"]
    assert blobs == list(blobs)
    assert blobs != list(blobs)[:3]
    assert blobs != 4
    assert isinstance(blobs[0], BlobMetadata)
    assert repr(blobs) == "<4 blobs>"
    for outside in (4, -5):
        with pytest.raises(IndexError):
            blobs[outside]


def test_a_key_that_comes_twice_counts_last_for_every_reader_of_it() -> None:
    """The extent that is checked must be the extent that is read."""
    blob = msgspec.json.encode(described(4, 5))[:-1] + b',"offset":6,"length":1}'
    data = assemble(b'{"blobs":[],"blobs":[' + blob + b"]}", b"hello")
    reader = open_puffin(data)
    assert (reader.metadata.blobs[0].offset, reader.metadata.blobs[0].length) == (6, 1)
    assert reader.read(reader.blob(0)) == b"l"


def test_optional_keys_may_be_absent() -> None:
    (blob,) = open_puffin(assemble({"blobs": [described(compression_codec=None)]})).metadata.blobs
    assert blob.codec is None
    assert blob.properties == {}
    assert open_puffin(assemble({"blobs": []})).metadata.properties == {}


def test_white_space_and_any_order_are_json_too() -> None:
    document = {"properties": {"a": "b"}, "blobs": [dict(reversed(described(4, 2).items()))]}
    data = assemble(json.dumps(document, indent=4).encode(), b"ok")
    reader = open_puffin(data)
    assert reader.metadata.properties == {"a": "b"}
    assert reader.read(reader.blob(0)) == b"ok"
