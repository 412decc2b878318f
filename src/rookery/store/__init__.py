"""What is kept for a table: states and segments, beside it."""

from rookery.store.segment import Segment, open_segment, write_segment
from rookery.store.state import FILES_SCHEMA, RowIndex, SegmentEntry, State, StateIndex
from rookery.store.store import Store, default_location
from rookery.store.tiers import merge_tiers

__all__ = [
    "FILES_SCHEMA",
    "RowIndex",
    "Segment",
    "SegmentEntry",
    "State",
    "StateIndex",
    "Store",
    "default_location",
    "merge_tiers",
    "open_segment",
    "write_segment",
]
