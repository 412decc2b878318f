"""Selecting a catalog: one configured for PyIceberg, one named by its address, or the embedded one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.catalog import Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.table import Table
from pyiceberg.utils.config import DEFAULT, Config

from rookery.io import RenewableProperties
from rookery.io.location import FILE_IO
from rookery.io.redaction import redact
from rookery.model import CatalogError, MissingTableError, RookeryError, TableName, UsageError
from rookery.tables.iceberg.any_blob_type import load_with_any_blob_type
from rookery.tables.iceberg.foreign_types import carrying
from rookery.tables.iceberg.table import IcebergTable

EMBEDDED_NAME = "lake"
SQL, REST, HIVE, GLUE = "sql", "rest", "hive", "glue"  # kinds of catalog
HOME_VARIABLE = "ROOKERY_HOME"
_PYDANTIC = re.compile(r"Value error, (.*?) \[type=")


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """A catalog's name and its properties, as PyIceberg knows them."""

    name: str
    properties: Mapping[str, str] = field(repr=False)  # may contain secrets

    @property
    def type(self) -> str:
        """The kind of catalog, as `sql` or `rest`: by `type`, else by its address."""
        stated = self.properties.get("type")
        try:
            if stated:
                return CatalogType(stated.lower()).value
            inferred = infer_catalog_type(self.name, dict(self.properties))
        except ValueError as error:
            raise CatalogError(
                f"catalog '{self.name}': {redact(str(error), self.properties)}",
                hint="set its uri, and its type if that is not rest, sql, hive or glue",
            ) from error
        assert inferred is not None
        return inferred.value


def home() -> Path:
    """The folder of the embedded catalog: `$ROOKERY_HOME`, or `.rookery` in the home directory."""
    return Path(os.environ.get(HOME_VARIABLE) or Path.home() / ".rookery").absolute()


def embedded(folder: Path | None = None) -> CatalogConfig:
    """The catalog that needs no setup: SQLite and a folder, shared by Spark and Python."""
    folder = folder or home()
    return CatalogConfig(
        EMBEDDED_NAME,
        {
            "type": "sql",
            "uri": f"sqlite:///{folder / 'catalog.db'}?timeout=30",
            "warehouse": f"file://{folder / 'warehouse'}",
        },
    )


def configured() -> Mapping[str, Mapping[str, str]]:
    """The catalogs of `.pyiceberg.yaml` and of the `PYICEBERG_CATALOG__…` variables, by name."""
    config = _pyiceberg_config()
    try:
        return {name: _flat(config.get_catalog_config(name) or {}) for name in config.get_known_catalogs()}
    except ValueError as error:
        raise CatalogError(f"PyIceberg's configuration: {error}", hint="check .pyiceberg.yaml") from error


def _pyiceberg_config() -> Config:
    try:
        return Config()
    except Exception as error:  # strictyaml has its own errors, which quote the file
        raise CatalogError(
            f"PyIceberg's configuration cannot be read: {type(error).__name__}", hint="check .pyiceberg.yaml"
        ) from error


def _default_name() -> str | None:
    """PyIceberg's configured default catalog."""
    config = _pyiceberg_config()
    try:
        name = config.get_default_catalog_name()
        return None if name == DEFAULT and DEFAULT not in config.get_known_catalogs() else name
    except ValueError as error:
        raise CatalogError(f"PyIceberg's configuration: {error}", hint="check .pyiceberg.yaml") from error


def _flat(properties: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in properties.items()}


def resolve(
    name: str | None = None, uri: str | None = None, warehouse: str | None = None, **properties: str
) -> CatalogConfig:
    """Resolve a catalog. Arguments override the configuration.

    Without arguments, it is PyIceberg's default catalog if one is configured, else the embedded one.
    """
    given = {key: value for key, value in {"uri": uri, "warehouse": warehouse, **properties}.items() if value}
    known = configured()
    if name is None and not given:
        name = _default_name()
        if name is None:
            return embedded()
    if name is None:
        return CatalogConfig(EMBEDDED_NAME, given)
    if name.lower() in known:
        return CatalogConfig(name, {**known[name.lower()], **given})
    if given:
        return CatalogConfig(name, given)
    if name == EMBEDDED_NAME:
        return embedded()
    raise UsageError(
        f"there is no catalog '{name}'",
        hint=f"configured are: {', '.join(sorted(known)) or 'none'}; add it to .pyiceberg.yaml, or use --uri",
    )


def resolve_table(text: str, catalog: str | None = None) -> tuple[CatalogConfig, TableName]:
    """Resolve a table's name and its catalog: *catalog*, or the one that the name begins with."""
    config = resolve(catalog)
    name = TableName.parse(text, default_catalog=config.name, catalogs=configured().keys())
    return (config if name.catalog == config.name else resolve(name.catalog)), name


def open_catalog(config: CatalogConfig) -> Catalog:
    """Open a catalog; the folder of a SQLite one is made if it is missing."""
    kind = config.type  # raises if it is not configured, before anything is tried
    if kind == SQL:
        _make_sqlite_folder(config.properties.get("uri", ""))
    try:
        return load_catalog(config.name, **{PY_IO_IMPL: FILE_IO, **config.properties})
    except Exception as error:  # every catalog client raises its own errors
        raise CatalogError(
            f"catalog '{config.name}' cannot be opened: {reason_of(error, config.properties)}",
            hint="check its uri and that the server runs; `rookery doctor` gives details",
        ) from error


def reason_of(error: Exception, properties: Mapping[str, str]) -> str:
    """Return another library's error as one line, without secrets."""
    text = " ".join(str(error).split())
    match = _PYDANTIC.search(text)  # pydantic quotes the input and adds a link
    return redact(match.group(1) if match else text, properties) or type(error).__name__


def open_table(catalog: Catalog, name: TableName, properties: Mapping[str, str]) -> IcebergTable:
    """Open a table; *properties* are the catalog's."""
    return IcebergTable(name, load_table(catalog, name, properties))


def load_table(catalog: Catalog, name: TableName, properties: Mapping[str, str]) -> Table:
    """Load a table; *properties* are the catalog's, whose secrets errors must not show."""
    try:
        return _renewable(_load(catalog, name.identifier), properties)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        if is_view(catalog, name.identifier):
            raise UsageError(f"{name} is a view", hint="name the tables that it reads") from error
        raise MissingTableError(
            f"there is no table {name}", hint="check the name, or use --catalog"
        ) from error
    except Exception as error:  # every catalog client raises its own errors
        raise CatalogError(
            f"{name} cannot be loaded: {reason_of(error, properties)}",
            hint="check that the catalog is reachable, and that its metadata can be read",
        ) from error


def _load(catalog: Catalog, identifier: tuple[str, ...]) -> Table:
    with carrying():
        return load_with_any_blob_type(lambda: catalog.load_table(identifier))


def table_locations(catalog: Catalog) -> Iterator[str]:
    """Yield where tables are, or would be, one of each namespace: enough to know a catalog's stores."""
    for namespace in catalog.list_namespaces():
        tables = catalog.list_tables(namespace)
        if tables:
            yield _load(catalog, tables[0]).location()
        elif location := catalog.load_namespace_properties(namespace).get("location"):
            yield str(location)


def _renewable(table: Table, properties: Mapping[str, str]) -> Table:
    """Make a table's storage settings renewable: those of a REST server may expire."""
    fetch = _TableSettings(CatalogConfig(table.catalog.name, dict(properties)), table.name())
    # PyIceberg reads them whenever it opens a file system, so they are renewed here.
    table.io.properties = RenewableProperties(table.io.properties, fetch)  # type: ignore[assignment]
    return table


@dataclass(frozen=True, slots=True)
class _TableSettings:
    """Fetches a table's storage settings from its catalog; in worker processes too, so it has only names."""

    config: CatalogConfig
    identifier: tuple[str, ...]

    def __call__(self) -> Mapping[str, str]:
        try:
            return dict(_load(open_catalog(self.config), self.identifier).io.properties)
        except RookeryError:
            raise
        except Exception as error:  # every catalog client raises its own errors
            raise CatalogError(
                f"{'.'.join(self.identifier)} cannot be loaded: {reason_of(error, self.config.properties)}"
            ) from error


def is_view(catalog: Catalog, identifier: tuple[str, ...]) -> bool:
    """Whether a name that is no table's is that of a view."""
    try:
        if getattr(catalog, "engine", None) is not None:
            return _stands_in_sql(catalog, identifier)
        return catalog.view_exists(identifier)
    except Exception:  # noqa: BLE001  # not every catalog has views, and the error below does not need them
        return False


def _stands_in_sql(catalog: Catalog, identifier: tuple[str, ...]) -> bool:
    """PyIceberg's SQL catalog does not list views, but Java's stores them among the tables."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog  # brings SQLAlchemy
    from sqlalchemy import select

    assert isinstance(catalog, SqlCatalog)
    row = select(IcebergTables.table_name).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(identifier[:-1]),
        IcebergTables.table_name == identifier[-1],
    )
    with catalog.engine.connect() as connection:
        return connection.execute(row).first() is not None


def _make_sqlite_folder(uri: str) -> None:
    path = sqlite_path(uri)
    if path:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CatalogError(
                f"{path}: {error.strerror}", hint="choose another place for the catalog"
            ) from error


def sqlite_path(uri: str) -> str | None:
    """Return the file of a SQLite address, or None for any other.

    >>> sqlite_path("sqlite:////data/catalog.db?timeout=30"), sqlite_path("postgresql://host/db")
    ('/data/catalog.db', None)
    """
    scheme, separator, rest = uri.partition(":///")
    if not separator or scheme.split("+")[0] != "sqlite":
        return None
    return rest.partition("?")[0] or None
