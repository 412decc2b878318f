"""One catalog server and one object store for all tests here; clients have no keys but what is handed out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

import rookery
from rookery.api.lake import Lake
from tests.rest.catalog_server import RestServer, serve_catalog
from tests.rest.s3_server import BUCKET, S3Server, serve_s3


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture(scope="session")
def rest_server(s3_server: S3Server) -> Iterator[RestServer]:
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": "jdbc:sqlite::memory:",
        "jdbc.schema-version": "V1",
        "warehouse": f"s3://{BUCKET}/warehouse",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        **s3_server.properties(),
    }
    with serve_catalog(properties) as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server) -> S3Server:
    s3_server.expired.clear()
    s3_server.requests.clear()
    s3_server.users.clear()
    return s3_server


@pytest.fixture
def rest(rest_server: RestServer, s3: S3Server) -> RestServer:
    """The catalog, which hands out a key with a session token."""
    rest_server.handed_out = s3.admit("vended-key-id", "vended-secret-key", "vended-token")
    rest_server.credentials = []
    rest_server.defaults = {}
    rest_server.requests.clear()
    return rest_server


@dataclass(frozen=True)
class Prepared:
    """A table that a session of its own has analysed, and what that session told."""

    lake: Lake
    name: str
    told: dict[str, Any]


SECRETS = ("the-token-of-the-client", "the-secret-of-the-client")


@pytest.fixture(scope="session")
def prepared(
    rest_server: RestServer, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Prepared:
    """A table of 20 files with a Bloom index, on a store that only the catalog's server knows."""
    rest_server.handed_out = s3_server.admit("vended-key-id", "vended-secret-key", "vended-token")

    def renew_keys() -> None:
        s3_server.expired.add("vended-token")
        rest_server.handed_out = s3_server.admit("renewed-key-id", "renewed-secret-key", "renewed-token")

    rest_server.renew_keys = renew_keys
    home = tmp_path_factory.mktemp("rest-home")
    properties = {"type": "rest", "uri": rest_server.uri, "token": SECRETS[0], "header.x-secret": SECRETS[1]}
    (home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"prod": properties}}))
    rookery.connect("prod", **properties).catalog.create_namespace_if_not_exists("db")
    environment = {**os.environ, "PYICEBERG_HOME": str(home), "ROOKERY_HOME": str(home)}
    secrets = [*SECRETS, "vended-secret-key", "vended-token"]
    command = [sys.executable, "-m", "tests.rest.prepare", "prod.db.prepared", *secrets]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return Prepared(rookery.connect("prod", **properties), "prod.db.prepared", told)
