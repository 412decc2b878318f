"""One server of a kind for all tests of this room, each on the loopback and on a free port."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.io.conformance import Store
from tests.io.web import Web, serve
from tests.rest.s3_server import BUCKET, S3Server, serve_s3

KEY_ID = "rookery-key-id"
SECRET = "rookery-secret-key"


@pytest.fixture(scope="session")
def _web() -> Iterator[Web]:
    with serve() as web:
        yield web


@pytest.fixture
def web(_web: Web) -> Web:
    _web.files.clear()
    _web.refused.clear()
    _web.requests.clear()
    _web.knows_ranges = True
    return _web


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture(scope="session")
def s3_properties(s3_server: S3Server) -> Mapping[str, str]:
    """A real S3 server, described as a catalog would describe it."""
    return s3_server.admit(KEY_ID, SECRET)


@pytest.fixture(scope="session")
def s3_client(s3_server: S3Server) -> Any:
    return s3_server.client()


@pytest.fixture
def s3_store(s3_client: Any, s3_properties: Mapping[str, str]) -> Store:
    prefix = uuid.uuid4().hex

    def get(name: str) -> bytes | None:
        try:
            return s3_client.get_object(Bucket=BUCKET, Key=f"{prefix}/{name}")["Body"].read()
        except s3_client.exceptions.NoSuchKey:
            return None

    return Store(
        put=lambda name, data: s3_client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=data),
        get=get,
        address=lambda name: f"s3://{BUCKET}/{prefix}/{name}",
        properties=s3_properties,
    )
