"""Tables whose statistics hold blobs of any type; PyIceberg knows two, and loads no table with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PLACE = "blob-metadata"  # as validation names it


def load_with_any_blob_type(load: Callable[[], T]) -> T:
    """Load a table; where PyIceberg refuses a blob's type, make it accept any text, and load again."""
    try:
        return load()
    except Exception as error:  # each kind of catalog wraps validation errors in its own way
        if _PLACE not in str(error):
            raise
        accept_any_blob_type()
        return load()


def accept_any_blob_type() -> None:
    """Let PyIceberg accept any text as the type of a blob, as the specification does; for this process."""
    # Imported here, as only such tables need them: the models of metadata have no stable place.
    from pyiceberg.catalog.rest import TableResponse
    from pyiceberg.table import CommitTableRequest, CommitTableResponse, metadata, statistics, update

    statistics.BlobMetadata.model_fields["type"].annotation = str
    for model in (
        statistics.BlobMetadata,
        statistics.StatisticsFile,
        metadata.TableMetadataV1,
        metadata.TableMetadataV2,
        metadata.TableMetadataV3,
        metadata.TableMetadataWrapper,
        TableResponse,
        update.SetStatisticsUpdate,
        CommitTableRequest,
        CommitTableResponse,
    ):
        model.model_rebuild(force=True)
