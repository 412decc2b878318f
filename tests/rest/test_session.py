"""A Spark session for a REST catalog whose server alone knows the store and the keys to it."""

from __future__ import annotations

import pytest

from rookery.spark.catalogs import ICEBERG_AWS
from tests.rest.conftest import Prepared
from tests.rest.prepare import FILES, ROWS

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


def test_no_secret_where_others_can_read_it(prepared: Prepared) -> None:
    assert prepared.told["exposed"] == []
    assert prepared.told["environment"] == []
    assert prepared.told["shown"] == []
