"""Which catalog: one that is configured, one named by its address, or the embedded one.

The configuration is PyIceberg's, for tables of every format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.catalog import CatalogType, infer_catalog_type
from pyiceberg.utils.config import DEFAULT, Config

from rookery.io.redaction import redact
from rookery.model import CatalogError, TableName, UsageError
from rookery.tables.addresses import WORDS, refusal, translated

EMBEDDED_NAME = "lake"
SQL, REST, HIVE, GLUE = "sql", "rest", "hive", "glue"  # kinds of catalog
HOME_VARIABLE = "ROOKERY_HOME"


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """A catalog's name and its properties, as PyIceberg knows them."""

    name: str
    properties: Mapping[str, str] = field(repr=False)  # may contain secrets
    is_embedded: bool = False  # the one that needs no setup: the first table creates it

    @property
    def type(self) -> str:
        """The kind of catalog, as `sql` or `rest`: by `type`, else by its address."""
        stated = self.properties.get("type")
        if refused := refusal(self.properties):
            raise CatalogError(f"catalog '{self.name}': {refused[0]}", hint=refused[1])
        if stated:
            try:
                return CatalogType(stated.lower()).value
            except ValueError as error:
                raise CatalogError(
                    f"catalog '{self.name}': PyIceberg has no catalogs of type {redact(stated)}",
                    hint=f"types are {', '.join(each.value for each in CatalogType)}",
                ) from error
        try:
            inferred = infer_catalog_type(self.name, dict(self.properties))
        except ValueError as error:
            raise CatalogError(
                f"catalog '{self.name}': {redact(str(error), self.properties)}",
                hint=f"{WORDS}; or set its type",
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
        is_embedded=True,
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

    Without arguments, it is PyIceberg's default catalog if one is configured, else the one that is configured
    as `lake`, else the embedded one.
    """
    given = {key: value for key, value in {"uri": uri, "warehouse": warehouse, **properties}.items() if value}
    known = configured()
    if name is None and not given:
        name = _default_name() or EMBEDDED_NAME
    if name is None:
        return CatalogConfig(_name_of_address(known), translated(given))
    if name.lower() in known:
        return CatalogConfig(name, translated({**known[name.lower()], **given}))
    if given:
        return CatalogConfig(name, translated(given))
    if name == EMBEDDED_NAME:
        return embedded()
    raise UsageError(
        f"there is no catalog '{name}'",
        hint=f"configured are: {', '.join(sorted(known)) or 'none'}; add it to .pyiceberg.yaml, or use --uri",
    )


def _name_of_address(known: Mapping[str, Mapping[str, str]]) -> str:
    """The name of a catalog that is given by its address alone; it must not be that of another one."""
    if EMBEDDED_NAME in known:
        raise UsageError(
            f"the address needs a name: another catalog is configured as '{EMBEDDED_NAME}'",
            hint="add --catalog NAME, in Python connect(NAME, uri=…)",
        )
    return EMBEDDED_NAME


def resolve_table(text: str, catalog: str | None = None) -> tuple[CatalogConfig, TableName]:
    """Resolve a table's name and its catalog: *catalog*, or the one that the name begins with."""
    config = resolve(catalog)
    name = TableName.parse(text, default_catalog=config.name, catalogs=configured().keys())
    return (config if name.catalog == config.name else resolve(name.catalog)), name


def sqlite_path(uri: str) -> str | None:
    """Return the file of a SQLite address, or None for any other.

    >>> sqlite_path("sqlite:////data/catalog.db?timeout=30"), sqlite_path("postgresql://host/db")
    ('/data/catalog.db', None)
    """
    scheme, separator, rest = uri.partition(":///")
    if not separator or scheme.split("+")[0] != "sqlite":
        return None
    return rest.partition("?")[0] or None
