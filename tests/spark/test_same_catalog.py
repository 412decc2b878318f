"""Which catalogs of a session Python opens itself: those with the same tables."""

from __future__ import annotations

import pytest

from rookery.spark.catalogs import spark_catalog
from rookery.spark.session_catalogs import SessionCatalogs, is_same_catalog
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
