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

__all__ = [
    "IN_MEMORY",
    "CatalogError",
    "Certainty",
    "Check",
    "Estimate",
    "FormatError",
    "MachineError",
    "Outcome",
    "Place",
    "RookeryError",
    "StorageError",
    "TableName",
    "UsageError",
    "findings",
    "quote_part",
    "split_name",
]
