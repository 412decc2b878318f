"""The words of the house: frozen types that every room shares, and the one error root."""

from rookery.model.check import Check, Outcome, findings
from rookery.model.errors import (
    IN_MEMORY,
    CatalogError,
    FormatError,
    MachineError,
    Place,
    RookeryError,
    StorageError,
    UsageError,
)
from rookery.model.estimate import Certainty, Estimate
from rookery.model.names import TableName, quote_part, split_name
from rookery.model.report import Sheet, SheetReport, in_bytes, thousands
from rookery.model.table import Field, Snapshot

__all__ = [
    "IN_MEMORY",
    "CatalogError",
    "Certainty",
    "Check",
    "Estimate",
    "Field",
    "FormatError",
    "MachineError",
    "Outcome",
    "Place",
    "RookeryError",
    "Sheet",
    "SheetReport",
    "Snapshot",
    "StorageError",
    "TableName",
    "UsageError",
    "findings",
    "in_bytes",
    "quote_part",
    "split_name",
    "thousands",
]
