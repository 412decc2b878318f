"""Tables: what every format provides. Each format is a package; `formats` opens tables of any of them."""

from rookery.tables.files import FILE_SCHEMA, IDENTITY, FileList, identities
from rookery.tables.table import (
    EngineTable,
    RowChanges,
    SnapshotChanges,
    SnapshotTotals,
    StatisticsFile,
    Table,
)

__all__ = [
    "FILE_SCHEMA",
    "IDENTITY",
    "EngineTable",
    "FileList",
    "RowChanges",
    "SnapshotChanges",
    "SnapshotTotals",
    "StatisticsFile",
    "Table",
    "identities",
]
