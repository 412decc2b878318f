"""Making an Iceberg table of rows, or adding rows to one, through PyIceberg: one commit at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table, Transaction

from rookery.io.redaction import reason_of
from rookery.model import CatalogError, RookeryError, StorageError, TableName, UsageError
from rookery.tables.iceberg.catalogs import load_table
from rookery.tables.iceberg.data_writer import DataWriter, RecordingIO, delete_files
from rookery.tables.iceberg.layout_text import partition_spec, sort_order
from rookery.tables.iceberg.table import IcebergTable
from rookery.tables.load import Written

_log = logging.getLogger(__name__)
_REFUSED = (CommitFailedException, ValidationException, TableAlreadyExistsError, NoSuchTableError)


class IcebergTableLoad:
    """A load that is under way: `rookery.tables.load.TableLoad` for Iceberg."""

    def __init__(
        self,
        create: Callable[[], Catalog],
        name: TableName,
        properties: Mapping[str, str],
        table: Table | None,
    ) -> None:
        self._create = create  # opens the catalog, which is created if it is missing
        self.name = name
        self._properties = properties  # of the catalog, whose secrets errors must not show
        self._table = table
        self._transaction: Transaction | None = None
        self._writer: DataWriter | None = None
        self._io: RecordingIO | None = None
        self._namespaces: list[tuple[str, ...]] = []  # that it has made
        self._is_undecided = False  # whether a commit may have succeeded
        self.snapshot_id: int | None = None  # of the commit; None if there were no rows

    @cached_property
    def client(self) -> Catalog:
        """The catalog, when there are rows for it."""
        return self._create()

    @property
    def columns(self) -> pa.Schema | None:
        """The columns of the table that is added to."""
        return None if self._table is None else self._arrow_schema(self._table.schema())

    def _arrow_schema(self, schema: Schema) -> pa.Schema:
        try:
            return schema_to_pyarrow(schema, include_field_ids=False)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise UsageError(
                f"{self.name} cannot be added to: {reason_of(error, {})}",
                hint="PyIceberg writes the rows, and does not know a type of the table; use Spark",
            ) from error

    def begin(self, columns: pa.Schema, partition: Sequence[str], sort: Sequence[str]) -> pa.Schema:
        """Begin with these columns; return those in which rows are to be written."""
        self._transaction = (
            self._creation(columns, partition, sort) if self._table is None else (self._table.transaction())
        )
        # The transaction writes its manifests with the same, so that they are deleted too if it fails.
        pending = self._transaction._table
        pending.io = self._io = RecordingIO(pending.io)
        self._writer = DataWriter(self._io, self._transaction.table_metadata)
        return self._arrow_schema(self._transaction.table_metadata.schema())

    def _creation(self, columns: pa.Schema, partition: Sequence[str], sort: Sequence[str]) -> Transaction:
        schema = assign_fresh_schema_ids(self.client._convert_schema_if_needed(columns))
        spec, order = partition_spec(partition, schema), sort_order(sort, schema)
        try:
            self._make_namespace()
            return self.client.create_table_transaction(
                self.name.identifier, schema, partition_spec=spec, sort_order=order
            )
        except Exception as error:  # every catalog client raises its own errors
            raise self._catalog_error(error, "cannot be created") from error

    def _make_namespace(self) -> None:
        namespace = self.name.namespace
        if self.client.namespace_exists(namespace):
            return
        for level in range(1, len(namespace) + 1):
            try:
                self.client.create_namespace(namespace[:level])
                self._namespaces.append(namespace[:level])
            except NamespaceAlreadyExistsError:
                continue

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows."""
        assert self._writer is not None
        with self._storing():
            self._writer.write(rows)

    def finish(self) -> Written:
        """Write the rows that are still in memory."""
        assert self._writer is not None
        with self._storing():
            self._writer.finish()
        files = self._writer.files
        return Written(
            sum(file.record_count for file in files),
            len(files),
            sum(file.file_size_in_bytes for file in files),
            self._writer.sorted_within,
        )

    def commit(self) -> IcebergTable:
        """Make all rows visible; return the table as it is then."""
        assert self._transaction is not None
        assert self._writer is not None
        try:
            if self._writer.files:
                with self._transaction.update_snapshot().fast_append() as append:
                    for file in self._writer.files:
                        append.append_data_file(file)
                self.snapshot_id = append._snapshot_id
            self._is_undecided = True
            self._transaction.commit_transaction()
        except _REFUSED as error:
            self._is_undecided = False
            raise self._catalog_error(error, "was changed by others at the same time") from error
        except Exception as error:  # every catalog client raises its own errors
            if not self._is_undecided:
                raise self._catalog_error(error, "cannot be committed") from error
            raise CatalogError(
                f"{self.name}: the commit may have succeeded: {reason_of(error, self._properties)}",
                hint="`rookery describe` shows whether there is a new snapshot; the files were not deleted",
            ) from error
        self._namespaces.clear()
        return self._committed()

    def _committed(self) -> IcebergTable:
        try:
            return IcebergTable(self.name, load_table(self.client, self.name, self._properties))
        except RookeryError as error:
            raise CatalogError(
                f"the rows were committed, and then {error.message}", hint="do not load the files again"
            ) from error

    def abort(self) -> None:
        """Delete what was written, unless a commit may have succeeded."""
        if self._is_undecided:
            return
        if self._io is not None:
            left = delete_files(self._io, self._io.written)
            if left:
                _log.warning("%d files could not be deleted, such as %s", len(left), left[0])
        for namespace in reversed(self._namespaces):
            try:
                self.client.drop_namespace(namespace)
            except NamespaceNotEmptyError:
                break
            except Exception:  # noqa: BLE001  # the error that caused the abort is raised
                _log.warning("the namespace %s could not be dropped", ".".join(namespace))

    def _catalog_error(self, error: Exception, what: str) -> RookeryError:
        if isinstance(error, RookeryError):
            return error
        return CatalogError(
            f"{self.name} {what}: {reason_of(error, self._properties)}", hint="nothing was loaded"
        )

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if isinstance(error, RookeryError):
                raise
            raise StorageError(
                f"the files of {self.name} cannot be written: {reason_of(error, self._properties)}",
                hint="check disk space and permissions; nothing was loaded",
            ) from error
