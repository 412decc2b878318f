"""Registering statistics by PyIceberg, without Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.statistics import StatisticsFile

from rookery.io.redaction import reason_of
from rookery.model import CatalogError, MissingTableError, RookeryError, TableName
from rookery.model.retry import attempts
from rookery.puffin import BlobMetadata, WrittenFile
from rookery.tables.iceberg.any_blob_type import load_with_any_blob_type
from rookery.tables.iceberg.foreign_types import is_known
from rookery.tables.iceberg.schema import schema_of
from rookery.tables.java_errors import OtherTableError

ATTEMPTS = 12
_NEWEST_VERSION = 2  # of the format, that PyIceberg writes
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
KEPT_HINT = "what was collected is kept; run analyze again"


def commit_attempts() -> Iterator[int]:
    """Yield the numbers of attempts: others may commit first, statistics do not conflict and can wait."""
    return attempts(ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE)


def expired(name: TableName, snapshot_id: int) -> CatalogError:
    """Return the error of a snapshot that is gone: statistics would be registered for it all the same."""
    return CatalogError(
        f"snapshot {snapshot_id} of {name} has expired during the run", hint="run analyze again"
    )


def not_registered(name: TableName, reason: str) -> CatalogError:
    """Return the error of statistics that could not be registered."""
    return CatalogError(f"the statistics of {name} could not be registered: {reason}", hint=KEPT_HINT)


def not_committable(table: Table) -> str | None:
    """Return why PyIceberg cannot commit to a table; None if it can."""
    if table.format_version > _NEWEST_VERSION:
        return f"PyIceberg writes no metadata of format version {table.format_version}"
    if isinstance(table.catalog, NoopCatalog):
        return "PyIceberg does not know its catalog"
    columns = (field for schema in table.schemas().values() for field in schema_of(schema).leaves)
    unknown = next((field.type for field in columns if not is_known(field.type)), None)
    return None if unknown is None else f"PyIceberg does not know the type {unknown}"


def register_statistics(
    table: Table,
    name: TableName,
    snapshot_id: int,
    written: WrittenFile,
    is_named: Callable[[BlobMetadata], bool],
) -> None:
    """Register a statistics file for a snapshot, in one commit that is retried on conflict.

    Each attempt changes the metadata that the table has then: what others have committed meanwhile stays.
    """
    uuid = table.metadata.table_uuid
    try:
        for attempt in commit_attempts():
            now = load_with_any_blob_type(lambda: table.catalog.load_table(table.name()))
            if now.metadata.table_uuid != uuid:
                raise OtherTableError(name)
            if now.snapshot_by_id(snapshot_id) is None:
                raise expired(name, snapshot_id)
            try:
                now.update_statistics().set_statistics(
                    _statistics_file(snapshot_id, written, is_named)
                ).commit()
            except CommitFailedException:
                if attempt == ATTEMPTS:
                    raise
            else:
                return
    except RookeryError:
        raise
    except NoSuchTableError as error:
        raise MissingTableError(f"{name} has been dropped during the run") from error
    except Exception as error:  # every catalog client raises its own errors
        raise not_registered(name, reason_of(error, table.catalog.properties)) from error


def _statistics_file(
    snapshot_id: int, written: WrittenFile, is_named: Callable[[BlobMetadata], bool]
) -> StatisticsFile:
    blobs = [
        {
            "type": blob.type,
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "fields": blob.fields,
            "properties": blob.properties,
        }
        for blob in filter(is_named, written.metadata.blobs)
    ]
    return StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot_id,
            "statistics-path": written.location,
            "file-size-in-bytes": written.size,
            "file-footer-size-in-bytes": written.footer_size,
            "blob-metadata": blobs,
        }
    )
