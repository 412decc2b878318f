"""Ranges of S3 objects: one signed request each, and PyArrow's way where that is not answered."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from rookery.io import list_folder, open_source
from rookery.io.s3 import S3Object, S3Source, s3_object
from rookery.model import MissingFileError, StorageError
from tests.rest.s3_server import BUCKET, REGION, S3Server

KEYS = {"s3.access-key-id": "id", "s3.secret-access-key": "secret"}
DATA = bytes(range(256))


@pytest.fixture
def s3(s3_server: S3Server) -> S3Server:
    s3_server.admit("reader", "reader's secret", "reader's token")
    s3_server.requests.clear()
    return s3_server


def _put(s3: S3Server, key: str) -> str:
    s3.client().put_object(Bucket=BUCKET, Key=key, Body=DATA)
    return f"s3://{BUCKET}/{key}"


@pytest.mark.parametrize(
    "key",
    ["plain", "a b", "ä/ö=1/%41", "a//b", "a/../b", "a+b&c?d#e", "part=2024-01-01T00%3A00/x~y!'()*.parquet"],
)
def test_one_request_a_range_whatever_the_name(s3: S3Server, key: str) -> None:
    with open_source(_put(s3, key), s3.properties("reader")) as source:
        assert isinstance(source, S3Source)
        assert source.read(3, 7) == DATA[3:10]
        assert source.read(250, 6) == DATA[250:]
        assert source.read_all() == DATA
    assert [request.partition(" ")[0] for request in s3.requests] == ["GET"] * 3


def test_missing(s3: S3Server) -> None:
    with pytest.raises(MissingFileError):
        open_source(f"s3://{BUCKET}/none", s3.properties("reader")).read(0, 1)


@pytest.mark.parametrize("wrong", [{"s3.secret-access-key": "wrong"}, {"s3.session-token": "wrong"}])
def test_refused(s3: S3Server, wrong: dict[str, str]) -> None:
    location, properties = _put(s3, "refused"), {**s3.properties("reader"), **wrong}
    for action in (
        lambda: open_source(location, properties).read(0, 1),
        lambda: list_folder(f"s3://{BUCKET}/folder", properties),
    ):
        with pytest.raises(StorageError) as caught:
            action()
        assert not isinstance(caught.value, MissingFileError)
        assert "reader's" not in str(caught.value)


def test_an_empty_folder_is_not_a_missing_bucket(s3: S3Server) -> None:
    assert list_folder(f"s3://{BUCKET}/nothing/here", s3.properties("reader")) == []
    with pytest.raises(StorageError, match="there is no bucket 'elsewhere'"):
        list_folder("s3://elsewhere/nothing/here", s3.properties("reader"))


@pytest.mark.parametrize(
    ("location", "properties", "expected"),
    [
        ("s3://b/k", {"s3.region": "eu-west-1"}, "https://b.s3.eu-west-1.amazonaws.com/k"),
        ("s3a://b/k", {"client.region": "eu-west-1"}, "https://b.s3.eu-west-1.amazonaws.com/k"),
        ("s3://b/k", {"s3.endpoint": "http://host:9000"}, "http://host:9000/b/k"),
        ("s3://b/k", {"s3.endpoint": "host:9000/"}, "https://host:9000/b/k"),
        (
            "s3://b/k",
            {"s3.endpoint": "https://host", "s3.force-virtual-addressing": "true"},
            "https://b.host/k",
        ),
    ],
)
def test_addresses(location: str, properties: dict[str, str], expected: str) -> None:
    found = s3_object(location, {**KEYS, **properties})
    assert found is not None
    assert found.host + found.path == expected


@pytest.mark.parametrize(
    ("location", "properties"),
    [
        ("s3://b/k", {}),  # no region
        ("s3://b.c/k", {"s3.region": "eu-west-1"}),
        ("s3://b/k", {"s3.region": "cn-north-1"}),
        ("s3://b/k", {"s3.region": "eu-west-1", "s3.role-arn": "arn"}),
        ("s3://b/k", {"s3.region": "eu-west-1", "s3.proxy-uri": "http://proxy"}),
        ("s3://b/k", {"s3.region": "eu-west-1", "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}),
        ("s3://b/k", {"s3.region": "eu-west-1", "s3.secret-access-key": ""}),
        ("gs://b/k", {"s3.region": "eu-west-1"}),
    ],
)
def test_left_to_pyarrow(location: str, properties: dict[str, str]) -> None:
    assert s3_object(location, {**KEYS, **properties}) is None


@given(
    key=st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable()),
    secret=st.text("abcXYZ012/+=", min_size=1, max_size=40),
    token=st.none() | st.text("abcXYZ012/+=", min_size=1, max_size=40),
    now=st.integers(0, 2**32),
)
def test_signed_as_botocore_signs(key: str, secret: str, token: str | None, now: int) -> None:
    properties = {**KEYS, "s3.endpoint": "http://127.0.0.1:9000", "s3.region": REGION}
    properties["s3.secret-access-key"] = secret
    found = s3_object(f"s3://bucket/{key}", properties | ({"s3.session-token": token} if token else {}))
    assert found is not None
    assert found._signed(time.gmtime(now))["authorization"] == _by_botocore(found, now)


def _by_botocore(found: S3Object, now: int) -> str:
    """The header that botocore makes for the same request at the same time."""
    headers = {"host": urlsplit(found.host).netloc}
    request = AWSRequest(method="GET", url=found.host + found.path, headers=headers)
    request.context["timestamp"] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    request.headers["X-Amz-Content-SHA256"] = found._signed(time.gmtime(now))["x-amz-content-sha256"]
    if found.token:
        request.headers["X-Amz-Security-Token"] = found.token
    signer = S3SigV4Auth(Credentials(found.key_id, found.secret, found.token), "s3", found.region)
    stated = signer.string_to_sign(request, signer.canonical_request(request))
    signed = signer.signed_headers(signer.headers_to_sign(request))
    credential = f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}"
    return f"{credential}, SignedHeaders={signed}, Signature={signer.signature(stated, request)}"
