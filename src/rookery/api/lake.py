"""A lake: one catalog, opened for Python, and for Spark under the same name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rookery.api.closest import empty_hint, file_hint, missing_hint
from rookery.maintain.steps.other_tables import OtherTables
from rookery.model import (
    CatalogError,
    EmptyCatalogError,
    MetadataFile,
    MissingTableError,
    TableName,
    UsageError,
    is_metadata_file,
)
from rookery.model.cache import Cache
from rookery.sidecar import Store, store_of
from rookery.tables import Table
from rookery.tables.config import SQL, CatalogConfig, configured, resolve
from rookery.tables.formats import Catalog, open_catalog, open_metadata
from rookery.tables.iceberg import IcebergCatalog, iceberg

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog
    from pyiceberg.table import Table as PyIcebergTable
    from pyspark.sql import SparkSession

    from rookery.api.discover import DiscoverReport
    from rookery.api.load import LoadReport
    from rookery.api.maintain import MaintainReport
    from rookery.api.status import StatusReport
    from rookery.api.tables import TableList

__all__ = ["Lake", "connect"]

ALL = "*"  # the pattern that matches every table


class Lake:
    """The result of `connect`. The catalog is opened at first use."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        self.cache = Cache()

    @property
    def name(self) -> str:
        """The catalog's name, in Python and in Spark."""
        return self.config.name

    @property
    def properties(self) -> Mapping[str, str]:
        """The catalog's properties; they may contain secrets."""
        return self.config.properties

    @cached_property
    def _catalog(self) -> Catalog:
        return self._open_catalog()

    def _open_catalog(self) -> Catalog:
        return open_catalog(self.config, self.cache)

    @property
    def database(self) -> str | None:
        """The address of the database in which the catalog is, if it is in one."""
        return self.properties["uri"] if self.config.type == SQL else None

    @property
    def catalog(self) -> PyIcebergCatalog:
        """The catalog as PyIceberg opens it; in a database it is created if it does not exist."""
        if not isinstance(self._catalog, IcebergCatalog):
            raise UsageError(f"{self.name} is not a catalog of PyIceberg")
        return self._catalog.create()

    def clear_cache(self) -> None:
        """Clear this lake's cache of metadata, states, segments and footers; the next call reads them again.

        The data source `rookery` runs in Python processes of Spark. They have a cache of their own, which is
        not cleared. States and segments never change, so cached ones are never wrong.
        """
        self.cache.clear()

    def table_name(self, text: str) -> TableName:
        """Read `namespace.table` or `catalog.namespace.table`."""
        if is_metadata_file(text):
            raise not_in_catalog(text)
        try:
            return TableName.parse(text, default_catalog=self.name, catalogs=configured().keys())
        except UsageError as error:
            if hint := file_hint(text):
                raise UsageError(error.message, hint=hint) from error
            if "." in text or not text:
                raise
            hint = missing_hint(self._catalog, TableName(self.name, (), text))
            raise UsageError(error.message, hint=hint if "did you" in hint else error.hint) from error

    def load(self, named: str | TableName) -> PyIcebergTable:
        """Return a table as PyIceberg loads it, of this lake or of a catalog that its name begins with."""
        return iceberg(self._found(named)).table

    def open(self, named: str | TableName) -> tuple[Table, Store]:
        """Open a table as it is now, with the states and segments beside it."""
        loaded = self._found(named)
        return loaded, store_of(loaded, self.cache)

    def open_metadata(self, file: MetadataFile) -> tuple[Table, Store]:
        """Open the table of a metadata file, with the states and segments beside it; no catalog is asked."""
        table = open_metadata(file, file.location, self.properties, "check the path, and that it can be read")
        return table, store_of(table, self.cache)

    def _found(self, named: str | TableName) -> Table:
        """Open a table; if there is none, the error names those of similar names."""
        name = self.table_name(named) if isinstance(named, str) else named
        try:
            return self._table(name)
        except MissingTableError as error:
            raise MissingTableError(error.message, hint=self._missing_hint(name)) from error

    def _missing_hint(self, name: TableName) -> str:
        return missing_hint(self._catalog_of(name), name)

    def _table(self, name: TableName) -> Table:
        return self._catalog_of(name).open(name)

    def _catalog_of(self, name: TableName) -> Catalog:
        return self._catalog if name.catalog == self.name else open_catalog(resolve(name.catalog))

    def find(self, pattern: str) -> list[TableName]:
        """Return the tables whose names match: `db.orders`, `db.*`, `*`, with or without the catalog."""
        if not is_pattern(pattern):
            return [self.table_name(pattern)]
        pattern = pattern.removeprefix(f"{self.name}.")
        matching = [name for name in self.tables() if fnmatchcase(".".join(name.identifier), pattern)]
        if not matching and pattern == ALL:
            raise EmptyCatalogError(f"{self.name} has no tables", hint=empty_hint(self._catalog))
        if not matching:
            raise UsageError(f"no table of {self.name} matches '{pattern}'", hint="try '*' to see all")
        return sorted(matching, key=str)

    def find_all(self, patterns: Sequence[str]) -> list[TableName]:
        """Return the tables that any of the patterns match, each once."""
        return list(dict.fromkeys(name for pattern in patterns for name in self.find(pattern)))

    def other_tables(self) -> OtherTables:
        """Return the tables of the catalog, for checks before files are deleted."""

        def load(name: TableName) -> Table | None:
            try:
                return self._table(name)
            except MissingTableError:
                return None  # dropped since it was listed

        return OtherTables(self.tables, load)

    def tables(self) -> Iterator[TableName]:
        """Return the names of all tables of the catalog."""
        return self._catalog.tables()

    def answers(self) -> bool:
        """Whether the catalog answers."""
        try:
            self._catalog.count_namespaces()
        except CatalogError:
            return False
        return True

    @property
    def session(self) -> SparkSession | None:
        """The Spark session that the catalog is one of, if it is one of a session."""
        return None

    def spark(
        self, *, master: str | None = None, conf: Mapping[str, str] | None = None, attach: bool = True
    ) -> SparkSession:
        """Return a Spark session that has this catalog under its name, attached unless *attach* is off."""
        from rookery.spark import session  # pyspark is an extra, and slow to import

        return session(self.config, master=master, conf=conf, attach=attach)

    def load_files(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        table: str,
        *,
        partition: str | Sequence[str] = (),
        sort: str | Sequence[str] = (),
        append: bool = False,
    ) -> LoadReport:
        """Make a table of files, or with *append* add their rows to one, in one commit and without Spark.

        Files are Parquet, CSV, JSON Lines, ORC or Arrow: paths, folders, patterns or URLs. *partition* is a
        column, or a transform such as `day(ts)`; *sort* is a column, or `ts desc`; or several of these.
        """
        from rookery.api.load import load_files  # brings what only a writer needs

        name = self.table_name(table)
        return load_files(
            self._catalog_of(name),
            name,
            [files] if isinstance(files, str | os.PathLike) else files,
            properties=dict(self.properties),
            partition=[partition] if isinstance(partition, str) else partition,
            sort=[sort] if isinstance(sort, str) else sort,
            append=append,
        )

    def list_tables(self, *patterns: str) -> TableList:
        """Return the tables, all or those that patterns match, with rows, files, size and last commit."""
        from rookery.api.tables import list_tables  # which imports this module

        return list_tables(self, patterns)

    def status(self, *patterns: str, **options: Any) -> StatusReport:
        """Return the status of tables, all or those that patterns match; see `rookery.api.status.status`."""
        from rookery.api.status import status  # which imports this module

        return status(self, patterns, **options)

    def discover(self, *patterns: str, **options: Any) -> DiscoverReport:
        """Find keys and references between tables; see `rookery.api.discover.discover`."""
        from rookery.api.discover import discover  # which imports this module

        return discover(self, patterns, **options)

    def maintain(self, *patterns: str, **options: Any) -> MaintainReport:
        """Maintain tables by their policies; see `rookery.api.maintain.maintain`."""
        from rookery.api.maintain import maintain  # which imports this module

        return maintain(self, patterns, **options)

    def __repr__(self) -> str:
        return f"<Lake {self.name}>"


def not_in_catalog(text: str) -> UsageError:
    """Return the error of what needs a catalog, for a metadata file."""
    return UsageError(
        f"{text} is a metadata file, and this needs the table's name in a catalog",
        hint="describe, stats, explain, read, count and estimate take metadata files",
    )


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern of names, and not the name of one table."""
    return any(sign in text for sign in "*?[")


def connect(
    catalog: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | None = None,
    spark: SparkSession | None = None,
    **properties: str,
) -> Lake:
    """Open a catalog: by the name it has in `.pyiceberg.yaml`, by its address, or the embedded default.

    With *spark*, it is a catalog of that session, as it is configured there: the current one, or *catalog*.
    """
    if spark is None:
        return Lake(resolve(catalog, uri, warehouse, **properties))
    from rookery.api.session_lake import lake_of_session  # which imports this module

    if uri or warehouse or properties:
        raise UsageError(
            "a catalog of a session is configured there", hint="leave out spark, or uri, warehouse and so on"
        )
    return lake_of_session(spark, catalog)
