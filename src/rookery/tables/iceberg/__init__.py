"""Iceberg tables: metadata as one model, file sets as Arrow columns."""

from rookery.tables.iceberg.files import FILE_SCHEMA, read_files
from rookery.tables.iceberg.table import IcebergTable

__all__ = ["FILE_SCHEMA", "IcebergTable", "read_files"]
