"""Opening catalogs with PyIceberg, and what to do if that fails, by the cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType, load_catalog
from pyiceberg.io import PY_IO_IMPL

from rookery.io.location import FILE_IO
from rookery.io.redaction import reason_of
from rookery.model import CatalogError, RookeryError
from rookery.tables.config import SQL, CatalogConfig

_IMPLEMENTATION = "py-catalog-impl"
CHECK = "check its uri and that the server runs; `rookery doctor` gives details"
_EXTRAS = {  # what installs a module that a catalog needs
    "psycopg2": "'pyiceberg[sql-postgres]'",
    "psycopg": "'psycopg[binary]'",
    "pymysql": "pymysql",
    "MySQLdb": "mysqlclient",
    "thrift": "'pyiceberg[hive]'",
    "hive_metastore": "'pyiceberg[hive]'",
    "boto3": "'pyiceberg[glue]'",
    "botocore": "'pyiceberg[glue]'",
    "google": "'pyiceberg[bigquery]'",
}
_REFUSED = re.compile(
    r"\b(401|403)\b|unauthori[sz]ed|forbidden|not authori[sz]ed|authentication|access ?denied|"
    r"invalid.?(token|client|credential)|unable to locate credentials|oauth",
    re.I,
)
_UNREACHABLE = re.compile(
    r"connection refused|could not connect|max retries|timed? ?out|name or service|no route|"
    r"failed to resolve|could not translate host|nodename|network is unreachable|connection aborted",
    re.I,
)
_NOT_REST = re.compile(r"\b404\b|expecting value|jsondecode|validation error|invalid json|notfound", re.I)
_HINTS = (
    (re.compile(r"file is not a database", re.I), "check its uri: the file is not one of SQLite"),
    (
        _UNREACHABLE,
        "nothing answers at its address: check host and port, and that the server runs",
    ),
    (_REFUSED, "the server refuses access: check its token or credential, or user and password"),
    (
        _NOT_REST,
        "the server answers, but not as a REST catalog: check the path of its uri, without /v1",
    ),
)


def open_pyiceberg(config: CatalogConfig) -> Catalog:
    """Open a catalog, which creates nothing; raise `MissingCatalogError` if a database has none."""
    if config.type != SQL:  # which raises if it is not configured, before anything is tried
        return _opened(config, {})
    from rookery.tables.iceberg import sql_catalogs  # brings SQLAlchemy

    if sql_catalogs.is_in_memory(config):
        return _opened(config, {})
    sql_catalogs.check_file(config)
    client = _opened(config, {sql_catalogs.CREATES: "false"})
    client.properties.pop(sql_catalogs.CREATES)  # PyIceberg gives them to the files of tables too
    with explained(config, f"catalog '{config.name}' cannot be opened"):
        sql_catalogs.check_tables(config, client)
    return client


def create_catalog(config: CatalogConfig) -> None:
    """Create the file and the tables of a catalog in a database, where they are missing."""
    if config.type != SQL:
        return
    from rookery.tables.iceberg import sql_catalogs  # brings SQLAlchemy

    sql_catalogs.make_folder(config)
    _opened(config, {sql_catalogs.CREATES: "true"})


def _opened(config: CatalogConfig, added: Mapping[str, str]) -> Catalog:
    properties = {PY_IO_IMPL: FILE_IO, **config.properties, **added}
    with explained(config, f"catalog '{config.name}' cannot be opened"):
        if _IMPLEMENTATION in properties:
            return load_catalog(config.name, **properties)
        # `load_catalog` adds what is configured under the name, also to a catalog given by its address.
        return AVAILABLE_CATALOGS[CatalogType(config.type)](config.name, properties)


@contextmanager
def explained(config: CatalogConfig, what: str, hint: str = CHECK) -> Iterator[None]:
    """Raise errors of a catalog's client in one line, with a hint by their cause, or else *hint*."""
    try:
        yield
    except RookeryError:
        raise
    except Exception as error:  # every catalog client raises its own errors
        raise failure(error, config.properties, what, hint) from error


def failure(error: Exception, properties: Mapping[str, str], what: str, hint: str = CHECK) -> CatalogError:
    """Return the error to raise for one of a catalog's client."""
    if (missing := _missing_package(error)) is not None:
        package = missing.partition(".")[0]
        return CatalogError(
            f"{what}: the package {package} is not installed",
            hint=f"pip install {_EXTRAS.get(package, package)}",
        )
    stated = getattr(error, "orig", None)  # SQLAlchemy adds its statement and an address
    reason = reason_of(stated if isinstance(stated, Exception) else error, properties)
    return CatalogError(f"{what}: {reason}", hint=failure_hint(reason, hint))


def _missing_package(error: BaseException | None) -> str | None:
    """The module that could not be imported, if that is the cause."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name
        error = error.__cause__ or error.__context__
    return None


def failure_hint(reason: str, otherwise: str = CHECK) -> str:
    """Return what to do about the error of a catalog.

    >>> failure_hint("HTTPConnection: Connection refused")
    'nothing answers at its address: check host and port, and that the server runs'
    """
    for pattern, hint in _HINTS:
        if pattern.search(reason):
            return hint
    return otherwise
