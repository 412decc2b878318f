"""Apache Iceberg: catalogs and tables by PyIceberg, manifests as Arrow columns, commits by Java."""

from rookery.tables.iceberg.catalogs import IcebergCatalog
from rookery.tables.iceberg.table import IcebergTable, iceberg

__all__ = ["IcebergCatalog", "IcebergTable", "iceberg"]
