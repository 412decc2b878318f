"""What is kept for a table: states and segments, beside it."""

from rookery.store.segment import Segment, open_segment, write_segment
from rookery.store.state import FILES_SCHEMA, SegmentEntry, State, StateIndex
from rookery.store.store import Store, default_location

__all__ = [
    "FILES_SCHEMA",
    "Segment",
    "SegmentEntry",
    "State",
    "StateIndex",
    "Store",
    "default_location",
    "open_segment",
    "write_segment",
]
