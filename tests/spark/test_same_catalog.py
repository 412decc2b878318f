"""Which catalogs of a session Python opens itself: those with the same tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rookery.model import CatalogError
from rookery.spark.catalogs import spark_catalog
from rookery.spark.session_catalogs import SessionCatalogs, is_other_catalog, is_same_catalog
from rookery.spark.sessions import session
from rookery.tables.config import CatalogConfig

ADDRESS = "postgresql+psycopg2://host/db"


@pytest.mark.parametrize(
    ("of_python", "of_session", "is_same"),
    [
        ("", "", True),
        ("", "?ssl=true", True),
        ("", "?currentSchema=other", False),
        ("", "?ssl=true&options=-csearch_path%3Dother", False),
        ("?options=-csearch_path%3Dother", "", False),
        ("?sslmode=require", "", True),
    ],
)
def test_options_that_choose_a_schema(of_python: str, of_session: str, *, is_same: bool) -> None:
    """A name is that of another table in another schema of a database."""
    config = CatalogConfig("prod", {"type": "sql", "uri": ADDRESS + of_python, "warehouse": "s3://b/w"})
    settings = dict(spark_catalog(config).conf)
    settings["spark.sql.catalog.prod.uri"] += of_session
    assert is_same_catalog(SessionCatalogs(settings), config) is is_same
    assert is_other_catalog(SessionCatalogs(settings), config) is not is_same


@pytest.mark.parametrize(
    "changed", [{"uri": "jdbc:sqlite:/other.db"}, {"type": "rest"}, {"warehouse": "/w2"}]
)
def test_an_address_of_another_catalog(spark: SparkSession, tmp_path: Path, changed: dict[str, str]) -> None:
    """A session is not taken for one that has this catalog, and nothing is added to it."""
    config = CatalogConfig("mine", {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "/w"})
    known = spark_catalog(config).conf
    prefix = "spark.sql.catalog.mine"
    stated = {key: known[key] for key in (prefix, f"{prefix}.type", f"{prefix}.uri", f"{prefix}.warehouse")}
    assert not is_other_catalog(SessionCatalogs(stated), config)
    own = stated | {f"{prefix}.{key}": value for key, value in changed.items()}
    try:
        for key, value in own.items():
            spark.conf.set(key, value)
        with pytest.raises(CatalogError, match="another catalog under the name 'mine'") as caught:
            session(config)
        assert "connect('mine', spark=spark)" in (caught.value.hint or "")
        assert {key for key in spark.conf.getAll if key.startswith(prefix)} == set(own)
        assert list(tmp_path.iterdir()) == []
    finally:
        for key in own:
            spark.conf.unset(key)
