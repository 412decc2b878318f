"""One server of a kind for all tests of this room, each on the loopback and on a free port."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.storage.conformance import Store
from tests.storage.web import Web, serve

KEY_ID = "rookery-key-id"
SECRET = "rookery-secret-key"
REGION = "eu-central-1"
BUCKET = "rookery"


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
def s3_properties() -> Iterator[Mapping[str, str]]:
    """A real S3 server, described as a catalog would describe it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "s3.endpoint": f"http://{host}:{port}",
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "s3.region": REGION,
        "s3.force-virtual-addressing": "false",
    }
    server.stop()


@pytest.fixture(scope="session")
def s3_client(s3_properties: Mapping[str, str]) -> Any:
    client = boto3.client(
        "s3",
        endpoint_url=s3_properties["s3.endpoint"],
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
        region_name=REGION,
    )
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client


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
