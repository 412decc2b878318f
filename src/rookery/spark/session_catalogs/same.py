"""Whether a catalog that Python has configured is the one that a session has under the same name."""

from __future__ import annotations

from rookery.model import CatalogError
from rookery.spark.catalogs import spark_catalog
from rookery.spark.session_catalogs.names import PREFIX, SessionCatalogs
from rookery.tables.config import CatalogConfig

# What says where a catalog's tables are; the rest is how it is used.
_IDENTIFYING = ("", ".type", ".catalog-impl", ".uri", ".warehouse", ".prefix", ".glue.id")
_SCHEMA = ("currentSchema=", "options=")  # the options of an address of PostgreSQL that choose its tables


def is_same_catalog(session: SessionCatalogs, config: CatalogConfig) -> bool:
    """Whether a session's catalog has the tables of *config*, by the settings of both.

    In doubt it has not: the session's own settings are then used for all that is done in it.
    """
    try:
        expected = spark_catalog(config).conf
    except CatalogError:  # of a kind that Spark is not configured for
        return False
    prefix = f"{PREFIX}{config.name}"
    if _schema(config.properties.get("uri")) != _schema(session.settings.get(f"{prefix}.uri")):
        return False
    keys = [f"{prefix}{each}" for each in _IDENTIFYING]
    return all(_plain(expected.get(key)) == _plain(session.settings.get(key)) for key in keys)


def is_other_catalog(session: SessionCatalogs, config: CatalogConfig) -> bool:
    """Whether a session has, under the name of *config*, a catalog that is certainly another one.

    That is so if both state where it is, and differ.
    """
    prefix = f"{PREFIX}{config.name}"
    expected = spark_catalog(config).conf
    stated = [
        (expected.get(key), session.settings.get(key)) for key in (f"{prefix}{each}" for each in _IDENTIFYING)
    ]
    if any(one and other and _plain(one) != _plain(other) for one, other in stated):
        return True
    uri = session.settings.get(f"{prefix}.uri")
    return uri is not None and _schema(config.properties.get("uri")) != _schema(uri)


def _schema(uri: str | None) -> list[str]:
    """The options of an address by which a database has other tables under the same names.

    >>> _schema("jdbc:postgresql://h/db?ssl=true&currentSchema=a"), _schema(None)
    (['currentSchema=a'], [])
    """
    options = (uri or "").partition("?")[2].split("&")
    return sorted(each for each in options if each.startswith(_SCHEMA))


def _plain(value: str | None) -> str:
    """A setting without what means nothing: an address of JDBC may have options.

    >>> _plain("jdbc:sqlite:/c.db?busy_timeout=30000"), _plain("file:///w/"), _plain(None)
    ('jdbc:sqlite:/c.db', '/w', '')
    """
    text = (value or "").partition("?")[0].rstrip("/")
    return text.removeprefix("file://").removeprefix("file:")
