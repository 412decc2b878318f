"""The kinds of index: a module each, and a line each in the registry."""

from rookery.indexes.kind import Builder, IndexKind, MergeInput, RowConsumer
from rookery.indexes.registry import KINDS, kind_for, kind_names

__all__ = ["KINDS", "Builder", "IndexKind", "MergeInput", "RowConsumer", "kind_for", "kind_names"]
