"""Whether a catalog that Python has configured is the one that a session has under the same name."""

from __future__ import annotations

from rookery.model import CatalogError
from rookery.spark.catalogs import spark_catalog
from rookery.spark.session_catalogs.names import PREFIX, SessionCatalogs
from rookery.tables.config import CatalogConfig

# What says where a catalog's tables are; the rest is how it is used.
_IDENTIFYING = ("", ".type", ".catalog-impl", ".uri", ".warehouse", ".prefix", ".glue.id")


def is_same_catalog(session: SessionCatalogs, config: CatalogConfig) -> bool:
    """Whether a session's catalog has the tables of *config*, by the settings of both.

    In doubt it has not: the session's own settings are then used for all that is done in it.
    """
    try:
        expected = spark_catalog(config).conf
    except CatalogError:  # of a kind that Spark is not configured for
        return False
    keys = [f"{PREFIX}{config.name}{each}" for each in _IDENTIFYING]
    return all(_plain(expected.get(key)) == _plain(session.settings.get(key)) for key in keys)


def _plain(value: str | None) -> str:
    """A setting without what means nothing: an address of JDBC may have options.

    >>> _plain("jdbc:sqlite:/c.db?busy_timeout=30000"), _plain("file:///w/"), _plain(None)
    ('jdbc:sqlite:/c.db', '/w', '')
    """
    text = (value or "").partition("?")[0].rstrip("/")
    return text.removeprefix("file://").removeprefix("file:")
