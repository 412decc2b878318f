"""A table from its metadata file alone, as an engine has resolved it; no catalog is asked."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.io import PY_IO_IMPL
from pyiceberg.table import StaticTable

from rookery.io import RenewableProperties
from rookery.io.location import FILE_IO
from rookery.io.redaction import reason_of
from rookery.model import CatalogError, TableName
from rookery.tables.iceberg.any_blob_type import load_with_any_blob_type
from rookery.tables.iceberg.foreign_types import carrying
from rookery.tables.iceberg.table import IcebergTable


def open_metadata(
    name: TableName,
    location: str,
    properties: Mapping[str, str],
    hint: str = "Python needs access to the files that Spark reads",
) -> IcebergTable:
    """Open the table of a metadata file, which is read with *properties*."""
    try:
        with carrying():
            stated = {PY_IO_IMPL: FILE_IO, **properties}
            table = load_with_any_blob_type(lambda: StaticTable.from_metadata(location, stated))
        if isinstance(properties, RenewableProperties):
            table.io.properties = properties  # type: ignore[assignment]
        return IcebergTable(name, table)
    except Exception as error:  # every file system raises its own errors
        raise CatalogError(
            f"the metadata of {name} cannot be read: {reason_of(error, properties)}",
            hint=hint,
        ) from error
