"""Bad JSON in a footer: an error at the footer's payload, and a broken blob does not hide the file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rookery.puffin import PuffinError, open_puffin
from tests.puffin.builders import assemble, described, fails, source


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"blobs":null}',
        b'{"blobs":{}}',
        b'{"blobs":[1]}',
        b'{"blobs":[null]}',
        b'{"blobs":[]} x',
        b'{"blobs":[]}{"blobs":[]}',
        b'{"blobs":[],}',
        b'{"blobs":[],"properties":{"a":1}}',
        b'{"blobs":[],"properties":{"a":null}}',
        b'{"blobs":[],"properties":[]}',
        b'{"blobs":[],"properties":{"a":"\xff"}}',
        b'{"blobs":[],"properties":{"a":"\xc3"}}',
        b'{"blobs":[],"properties":{"a":"\\ud800"}}',
        b'{"blobs":[],"properties":{"a":"\x00"}}',
        b'{"blobs":[],"\xff":1}',
        b'{"blobs":[],"later":1e999}',
        b'{"blobs":[],"later":NaN}',
        b'{"blobs":[],"later":' + b"9" * 5000 + b"}",
        b'{"blobs":[],"later":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"blobs":[],"later":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"blobs":' + b"[" * 100_000,
        b"\xef\xbb\xbf" + b'{"blobs":[]}',
        '{"blobs":[]}'.encode("utf-16"),
        b"\x00" * 12,
    ],
    ids=lambda payload: repr(payload[:40]),
)
def test_json_of_a_file(payload: bytes) -> None:
    error = fails(assemble(payload))
    assert isinstance(error, PuffinError)
    assert error.place.offset == 8
    assert "JSON" in error.expected


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"offset": ...}, "offset"),
        ({"length": ...}, "length"),
        ({"offset": -1}, "offset"),
        ({"length": -1}, "length"),
        ({"offset": "4"}, "offset"),
        ({"length": None}, "length"),
        ({"offset": 4.5}, "offset"),
        ({"length": 2**63}, "length"),
        ({"offset": 2**64}, "offset"),
        ({"length": 10**100}, "length"),
        ({"offset": True}, "offset"),
    ],
    ids=str,
)
def test_json_of_an_extent(changes: dict[str, Any], found: str) -> None:
    error = fails(assemble({"blobs": [described(**changes)]}))
    assert error.place.offset == 8
    assert found in error.found


@pytest.mark.parametrize(
    "changes",
    [
        {"type": ...},
        {"type": None},
        {"type": 1},
        {"fields": ...},
        {"fields": 1},
        {"fields": ["1"]},
        {"fields": [None]},
        {"fields": [1.5]},
        {"fields": [2**31]},
        {"fields": [-(2**31) - 1]},
        {"snapshot_id": ...},
        {"snapshot_id": None},
        {"snapshot_id": "1"},
        {"snapshot_id": 2**63},
        {"snapshot_id": -(2**63) - 1},
        {"snapshot_id": 10**100},
        {"sequence_number": ...},
        {"sequence_number": 2**63},
        {"sequence_number": [1]},
        {"compression_codec": 1},
        {"compression_codec": ["zstd"]},
        {"properties": None},
        {"properties": []},
        {"properties": {"a": 1}},
        {"properties": {"a": {"b": "c"}}},
        {"type": ..., "later": 1},
        {"snapshot_id": "1", "later": 1},
    ],
    ids=str,
)
def test_json_of_a_blob(changes: dict[str, Any]) -> None:
    data = assemble({"blobs": [described(), described(**changes)]})
    error = fails(data)
    assert isinstance(error, PuffinError)
    assert error.place.offset == 8
    assert "blob 1" in error.expected
    # The file itself opens: its other blobs can be read.
    assert open_puffin(source(data)).metadata.blobs[0].type == "opaque"


@pytest.mark.parametrize("deep", [b"[" * 100_000 + b"]" * 100_000, b"9" * 5000, b"1e999", b'"\xff"'])
def test_json_in_an_unknown_key_of_a_blob(deep: bytes) -> None:
    blob = msgspec.json.encode(described())[:-1] + b',"later":' + deep + b"}"
    fails(assemble(b'{"blobs":[' + blob + b"]}"))
