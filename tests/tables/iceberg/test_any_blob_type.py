"""Tables whose statistics name blobs that PyIceberg does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from rookery.model import CatalogError, TableName
from rookery.sketch.blob_types import HLL_V1
from rookery.tables.config import embedded
from rookery.tables.iceberg.catalogs import IcebergCatalog, load_table

NAME = TableName("lake", ("db",), "t")
SCHEMA = Schema(NestedField(1, "id", LongType()))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    opened = IcebergCatalog(embedded(tmp_path)).create()
    opened.create_namespace("db")
    return opened


def create(catalog: Catalog, version: int, **blob: Any) -> None:
    """A table whose metadata names a statistics file with one blob."""
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    metadata["statistics"] = [
        {
            "snapshot-id": 7,
            "statistics-path": "file:///nowhere.stats",
            "file-size-in-bytes": 100,
            "file-footer-size-in-bytes": 50,
            "blob-metadata": [{"type": HLL_V1, "snapshot-id": 7, "sequence-number": 1, "fields": [1]} | blob],
        }
    ]
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize("version", [1, 2])
def test_a_type_that_pyiceberg_does_not_know(catalog: Catalog, version: int) -> None:
    create(catalog, version)
    (file,) = load_table(catalog, NAME, {}).metadata.statistics
    (blob,) = file.blob_metadata
    assert (blob.type, blob.snapshot_id, blob.fields) == (HLL_V1, 7, [1])
    assert HLL_V1 in file.model_dump_json(by_alias=True)


@pytest.mark.parametrize("blob", [{"type": 5}, {"fields": "all"}])
def test_what_is_wrong_is_refused(catalog: Catalog, blob: dict[str, Any]) -> None:
    create(catalog, 2, **blob)
    with pytest.raises(CatalogError, match="cannot be loaded"):
        load_table(catalog, NAME, {})
