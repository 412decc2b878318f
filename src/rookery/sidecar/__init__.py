"""Files stored beside a table: states, segments, and the statistics file that is made of a state."""

from rookery.sidecar.declared import Declared
from rookery.sidecar.segment import Contents, IndexBlob, Segment, open_segment, write_segment
from rookery.sidecar.state import (
    FILES_SCHEMA,
    DistributionHeader,
    Index,
    SegmentEntry,
    State,
    StateHeader,
    Statistic,
)
from rookery.sidecar.store import Store, default_location, part_name, store_of
from rookery.sidecar.zone_map import ZoneMap

__all__ = [
    "FILES_SCHEMA",
    "Contents",
    "Declared",
    "DistributionHeader",
    "Index",
    "IndexBlob",
    "Segment",
    "SegmentEntry",
    "State",
    "StateHeader",
    "Statistic",
    "Store",
    "ZoneMap",
    "default_location",
    "open_segment",
    "part_name",
    "store_of",
    "write_segment",
]
