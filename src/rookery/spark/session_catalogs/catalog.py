"""A catalog that only a Spark session knows: tables are found by Spark, and their metadata is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.io import RenewableProperties
from rookery.io.redaction import redact
from rookery.model import CatalogError, MissingTableError, RookeryError, TableName, UsageError
from rookery.spark.live import check_session
from rookery.spark.session_catalogs.java_calls import ask
from rookery.spark.session_catalogs.names import session_catalogs
from rookery.tables import Table
from rookery.tables.formats import open_metadata
from rookery.tables.java_errors import failure_hint, java_reason, refused_types
from rookery.tables.load import TableLoad

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class OtherFormatError(UsageError):
    """A table is not one of Iceberg."""


@dataclass(frozen=True, slots=True)
class SessionCatalog:
    """A catalog of a session, of any type: `rookery.tables.formats.Catalog`."""

    spark: SparkSession
    name: str

    def open(self, name: TableName) -> Table:
        """Load a table as it is now."""
        found = self._found(name)
        io = RenewableProperties(found["io"], _Renewal(self, name))
        return open_metadata(name, found["metadata"], io)

    def start_load(self, name: TableName, *, append: bool) -> TableLoad:
        """Refuse: rows are written by Python, which does not know the catalog."""
        raise UsageError(
            f"files cannot be loaded into {name}: only the session knows the catalog '{self.name}'",
            hint="configure it for PyIceberg too, in .pyiceberg.yaml; or write the rows with Spark",
        )

    def storage_settings(self, name: TableName) -> Mapping[str, str]:
        """Return the settings with which a table's files are opened now."""
        settings: Mapping[str, str] = self._found(name)["io"]
        return settings

    def tables(self) -> Iterator[TableName]:
        """Yield the names of all tables."""
        with self._asking(f"the tables of '{self.name}' cannot be listed"):
            found = ask(self.spark, "tables", self.name)
        for *namespace, table in found:
            yield TableName(self.name, tuple(namespace), table)

    def count_namespaces(self) -> int:
        """Return how many namespaces there are at the top."""
        with self._asking(f"catalog '{self.name}' does not answer"):
            return len(ask(self.spark, "namespaces", self.name))

    def other_names(self) -> Sequence[str]:
        """Return none: Spark has opened the catalog by its name."""
        return ()

    def _found(self, name: TableName) -> dict[str, Any]:
        with self._asking(f"Spark cannot load {name}"), refused_types(name):
            found: dict[str, Any] = ask(self.spark, "open", self.name, name.identifier)
        match found["kind"]:
            case "missing":
                raise MissingTableError(f"there is no table {name}")
            case "view":
                raise UsageError(f"{name} is a view", hint="name the tables that it reads")
            case "other":
                raise OtherFormatError(f"{name} is not an Iceberg table")
            case "part":
                raise UsageError(
                    f"{name} is a branch, a snapshot or a metadata table", hint="name the table itself"
                )
        return found

    @contextmanager
    def _asking(self, failure: str) -> Iterator[None]:
        check_session(self.spark)
        try:
            yield
        except RookeryError:
            raise
        except Exception as error:  # py4j wraps all that Java throws
            reason = redact(java_reason(error), session_catalogs(self.spark).properties(self.name))
            raise CatalogError(f"{failure}: {reason}", hint=failure_hint(reason)) from error


class _Renewal:
    """Fetches a table's storage settings again, where the session is: processes of workers do not have it."""

    def __init__(self, catalog: SessionCatalog | None, name: TableName) -> None:
        self._catalog, self._name = catalog, name

    def __call__(self) -> Mapping[str, str]:
        if self._catalog is None:
            raise CatalogError(f"the storage settings of {self._name} can be renewed in the driver alone")
        return self._catalog.storage_settings(self._name)

    def __reduce__(self) -> tuple[object, ...]:
        return _Renewal, (None, self._name)
