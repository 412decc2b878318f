"""What is kept for a table: states and segments, beside it."""

from rookery.store.declared import Declared
from rookery.store.segment import Contents, Segment, open_segment, write_segment
from rookery.store.state import FILES_SCHEMA, Index, IndexKind, RowIndex, SegmentEntry, State, StateIndex
from rookery.store.store import Store, default_location, store_of
from rookery.store.tiers import merge_tiers
from rookery.store.zone_map import ZoneMap

__all__ = [
    "FILES_SCHEMA",
    "Contents",
    "Declared",
    "Index",
    "IndexKind",
    "RowIndex",
    "Segment",
    "SegmentEntry",
    "State",
    "StateIndex",
    "Store",
    "ZoneMap",
    "default_location",
    "merge_tiers",
    "open_segment",
    "store_of",
    "write_segment",
]
