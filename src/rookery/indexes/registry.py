"""The kinds of index, a line each; their stages follow each other in this order."""

from __future__ import annotations

from typing import Any

from rookery.indexes.bitmap import BitmapKind
from rookery.indexes.bloom import BloomKind
from rookery.indexes.kind import IndexKind
from rookery.model import Field
from rookery.sidecar import Index

KINDS: dict[str, IndexKind[Any]] = {
    kind.name: kind
    for kind in (
        BitmapKind(),
        BloomKind(),
    )
}


def kind_for(index: Index, field: Field) -> IndexKind[Any] | None:
    """Return the kind of an index if it can be built: this version knows it, and it serves the column."""
    kind = KINDS.get(index.kind)
    return kind if kind is not None and kind.serves(field) else None


def kind_names() -> str:
    """Return the names of the kinds, for hints."""
    return ", ".join(sorted(KINDS))
