"""A table that a Spark session of a REST catalog has analysed; only the server knows the store and its keys.

How that session reached it, and how many requests a key lookup takes of the catalog and the store together.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rookery
from rookery.model.cache import clear_caches
from rookery.spark.catalogs import ICEBERG_AWS
from tests.rest.catalog_server import RestServer
from tests.rest.conftest import Prepared
from tests.rest.prepare import FILES, ROWS
from tests.rest.s3_server import S3Server

pytestmark = pytest.mark.spark


def test_the_store_has_its_classes(prepared: Prepared) -> None:
    assert ICEBERG_AWS in prepared.told["packages"]


def test_analysed_with_what_is_handed_out(prepared: Prepared) -> None:
    assert prepared.told["files_read"] == FILES
    assert prepared.told["ndv"] == {"id": pytest.approx(ROWS, rel=0.05), "word": 500}
    assert prepared.told["freshness"] == "current"


def test_every_way_of_reading(prepared: Prepared) -> None:
    told = prepared.told
    assert (told["rows"], told["scanned"], told["source"]) == (ROWS - 100, 1, 1)
    assert told["blobs"] == 2


def test_plain_queries_of_an_attached_session(prepared: Prepared) -> None:
    assert prepared.told["attached"] == {"prod": [["word 712"], [1]], "sparks_own": [["word 712"], [1]]}


def test_a_catalog_that_only_the_session_knows(prepared: Prepared) -> None:
    told = prepared.told["through the session"]
    assert told == {"freshness": "current", "count": 1, "states": 1, "files_read": 1, "count of new": 1}


def test_no_secret_where_others_can_read_it(prepared: Prepared) -> None:
    assert prepared.told["exposed"] == []
    assert prepared.told["environment"] == []
    assert prepared.told["shown"] == []


@pytest.fixture
def requests_of(prepared: Prepared, rest: RestServer, s3: S3Server) -> Callable[[int], list[str]]:
    """Look a key up, check what is found, and return the requests that it took."""

    def look_up(key: int) -> list[str]:
        s3.requests.clear()
        rest.requests.clear()
        found = rookery.table(prepared.name, prepared.lake).read(f"id = {key}")
        assert found["word"].to_pylist() == ([f"word {key % 1000}"] if key % 2 == 0 else [])
        return [*rest.requests, *s3.requests]

    look_up(0)  # the catalog's own configuration is asked for once
    clear_caches()
    return look_up


def test_cold(requests_of: Callable[[int], list[str]]) -> None:
    assert len(found := requests_of(4712)) <= 10, found


def test_warm(requests_of: Callable[[int], list[str]]) -> None:
    requests_of(4712)
    for key in (4712, 12, 39_998):
        assert len(found := requests_of(key)) <= 4, found


def test_absent(requests_of: Callable[[int], list[str]]) -> None:
    """Such keys lie between present ones, so that bounds do not tell."""
    for key in range(5001, 5041, 2):
        requests_of(key)
    for key in range(5001, 5041, 2):
        assert len(found := requests_of(key)) == 1, found


def test_sizes_are_known(requests_of: Callable[[int], list[str]]) -> None:
    assert not [request for request in requests_of(4712) if request.startswith("HEAD")]
