"""`load_files` into a catalog whose server hands out the keys of the store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from tests.rest.catalog_server import RestServer
from tests.rest.s3_server import BUCKET

pytestmark = pytest.mark.spark  # which is to say, they need a JVM


@pytest.fixture
def lake(rest: RestServer) -> Lake:
    return rookery.connect("prod", uri=rest.uri, type="rest")


@pytest.fixture
def name(lake: Lake) -> Iterator[str]:
    """The name of a table in a namespace, both of which do not exist yet."""
    namespace = f"n{uuid.uuid4().hex[:10]}"
    yield f"{namespace}.inner.t"
    for level in ((namespace, "inner"), (namespace,)):
        if lake.catalog.namespace_exists(level):
            for table in lake.catalog.list_tables(level):
                lake.catalog.drop_table(table)
            lake.catalog.drop_namespace(level)


def test_load_and_append(lake: Lake, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,2024-01-01\n2,2024-01-02\n")
    report = lake.load_files(tmp_path / "a.csv", name, partition="day(day)", sort="id desc")
    assert (report.rows, report.files) == (2, 2)
    assert lake.load_files(tmp_path / "a.csv", name, append=True).rows == 2
    assert rookery.table(name, lake).count("id = 2") == 2
    described = rookery.table(name, lake).describe()
    assert (described.partition, described.sort_order) == (("day(day)",), "id DESC NULLS LAST")
    assert described.location.startswith(f"s3://{BUCKET}/")
    assert [each.rows_added for each in described.snapshots] == [2, 2]


def test_nothing_is_left_of_a_bad_row(lake: Lake, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2,3\n")
    with pytest.raises(UsageError, match="line 3"):
        lake.load_files(tmp_path / "a.csv", name)
    assert not lake.catalog.namespace_exists(tuple(name.split(".")[:1]))
