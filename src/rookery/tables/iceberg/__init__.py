"""Apache Iceberg: catalogs and tables by PyIceberg, manifests as Arrow columns, commits by Java."""

from rookery.tables.iceberg.table import IcebergTable

__all__ = ["IcebergTable"]
