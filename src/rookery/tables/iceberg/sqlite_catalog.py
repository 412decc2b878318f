"""Tables of a SQLite catalog, found by a query with Python's own driver: SQLAlchemy takes long to import.

Only what is usual is answered. For anything else the answer is None, and PyIceberg is asked, which also
reports what is wrong.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl, quote

from pyiceberg.catalog import Catalog
from pyiceberg.io import PY_IO_IMPL, load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from rookery.io.location import FILE_IO
from rookery.model.cache import Cache
from rookery.tables.config import SQL, CatalogConfig, sqlite_path

_DRIVERS = ("sqlite", "sqlite+pysqlite")
_TIMEOUT = 5.0  # seconds that Python's driver waits for a lock, if nothing is stated
# What changes how PyIceberg opens the catalog, or reads it.
_UNUSUAL = ("py-catalog-impl", "echo", "pool_pre_ping", "init_catalog_tables", "schema_version")
_LOCATION = """
    SELECT metadata_location FROM iceberg_tables
    WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?
    AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)
"""
# Such a file is never written twice; `v3.metadata.json` may be, after its table was dropped.
_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_PARSED = 20  # about how many times its JSON a parsed metadata takes in memory


class LocatedTable(Table):
    """A table whose catalog is opened when it is first needed: for a commit, or to load the table again."""

    def __init__(self, open_catalog: Callable[[], Catalog], *values: object, **named: object) -> None:
        super().__init__(*values, **named)  # type: ignore[arg-type]
        del self.catalog
        self._open_catalog = open_catalog

    @cached_property
    def catalog(self) -> Catalog:  # type: ignore[override]
        """The catalog, as PyIceberg opens it."""
        return self._open_catalog()


@dataclass(frozen=True, slots=True)
class SqliteCatalog:
    """The file of a catalog, and how it is read."""

    name: str
    file: str
    timeout: float
    properties: Mapping[str, str] = field(repr=False)  # may contain secrets
    cache: Cache = field(repr=False)

    def load(self, identifier: tuple[str, ...], open_catalog: Callable[[], Catalog]) -> Table | None:
        """Load a table as it is now; None if it is not found."""
        location = self.metadata_location(identifier)
        if location is None:
            return None
        metadata = self._metadata(location)
        properties = {**self.properties, **metadata.properties}
        return LocatedTable(
            open_catalog,
            identifier=Catalog.identifier_to_tuple(".".join(identifier[:-1])) + identifier[-1:],
            metadata=metadata,
            metadata_location=location,
            io=load_file_io(properties, location),
            catalog=None,
        )

    def metadata_location(self, identifier: tuple[str, ...]) -> str | None:
        """Return the metadata file of a table; None if it is not found."""
        if any(not part or part != part.strip() for part in identifier):
            return None
        namespace, table = ".".join(identifier[:-1]), identifier[-1]
        try:
            # Read-only, so that no file is created.
            uri = f"file:{quote(os.path.abspath(self.file))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=self.timeout)) as connection:
                row = connection.execute(_LOCATION, (self.name, namespace, table)).fetchone()
        except sqlite3.Error:
            return None
        return str(row[0]) if row is not None and row[0] else None

    def _metadata(self, location: str) -> TableMetadata:
        file = load_file_io(dict(self.properties), location).new_input(location)
        if not _UNIQUE.search(location):
            return FromInputFile.table_metadata(file)
        size = len(file)  # raises an error where the file is gone
        key = "table metadata", location, size
        found: TableMetadata | None = self.cache.find(key)
        if found is None:
            found = FromInputFile.table_metadata(file)
            self.cache.put(key, found, _PARSED * size)
        return found


def sqlite_catalog(config: CatalogConfig, cache: Cache | None = None) -> SqliteCatalog | None:
    """Return the catalog, if it is in SQLite and has no unusual setting; *cache* is for parsed metadata."""
    properties = {PY_IO_IMPL: FILE_IO, **config.properties}
    uri = properties.get("uri", "")
    scheme, _, rest = uri.partition(":///")
    file = sqlite_path(uri)
    if file is None or scheme not in _DRIVERS or file.startswith((":", "file:")):
        return None
    if config.type != SQL or properties.keys() & {*_UNUSUAL}:
        return None
    options = dict(parse_qsl(rest.partition("?")[2], keep_blank_values=True))
    try:
        timeout = float(options.pop("timeout", _TIMEOUT))
    except ValueError:
        return None
    if options:
        return None
    return SqliteCatalog(config.name, file, timeout, properties, Cache() if cache is None else cache)
