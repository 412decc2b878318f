"""What is kept for a table: states and segments, beside it."""

from rookery.sidecar.declared import Declared
from rookery.sidecar.segment import Contents, Segment, open_segment, write_segment
from rookery.sidecar.state import (
    FILES_SCHEMA,
    DistributionHeader,
    Index,
    IndexKind,
    SegmentEntry,
    State,
    StateHeader,
)
from rookery.sidecar.store import Store, default_location, store_of
from rookery.sidecar.tiers import merge_tiers
from rookery.sidecar.zone_map import ZoneMap

__all__ = [
    "FILES_SCHEMA",
    "Contents",
    "Declared",
    "DistributionHeader",
    "Index",
    "IndexKind",
    "Segment",
    "SegmentEntry",
    "State",
    "StateHeader",
    "Store",
    "ZoneMap",
    "default_location",
    "merge_tiers",
    "open_segment",
    "store_of",
    "write_segment",
]
