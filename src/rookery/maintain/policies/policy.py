"""A policy: the settings by which a table is maintained; `policy_file` and `choosing` find it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from rookery.maintain.policies.times import QuietHours, Schedule


class Strategy(StrEnum):
    """How data files are rewritten."""

    NONE = "none"
    BIN_PACK = "bin-pack"
    SORT = "sort"
    Z_ORDER = "z-order"


class Verify(StrEnum):
    """How a rewrite is compared with the rows before it: by their count, or by a hash of all of them."""

    COUNT = "count"
    ROWS = "rows"


FROM_QUERIES = "from-queries"


@dataclass(frozen=True, slots=True)
class Statistics:
    """When statistics are refreshed, and of which columns."""

    health: float = 0.8  # refreshed below it
    snapshots: int | None = None  # refreshed after so many new ones
    every: Schedule | None = None
    after_compaction: bool = True
    columns: tuple[str, ...] = ()  # none: all
    queries: tuple[
        str, ...
    ] = ()  # files of SQL whose columns are wanted; set only by `columns: from-queries`


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index that a table should have."""

    kind: str
    column: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """How data files are compacted, and when."""

    strategy: Strategy = Strategy.BIN_PACK
    columns: tuple[str, ...] = ()  # of sort and z-order; none: the table's own order
    target_size: int | None = None  # bytes; None: the table's own setting
    small_size: int | None = None  # none: three quarters of the target
    min_files: int = 5
    delete_ratio: float = 0.3
    most_overlap: float = 4.0  # sorted again when files overlap more deeply


@dataclass(frozen=True, slots=True)
class Deletes:
    """When position deletes are rewritten."""

    min_files: int = 5  # small ones in one partition
    dangling: bool = True  # whether deletes that apply to nothing are removed


@dataclass(frozen=True, slots=True)
class Manifests:
    """When manifests are rewritten."""

    most_small: int = 20  # manifests below half of the target size


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Which snapshots are kept; branches and tags may keep more by their own settings."""

    keep_for: timedelta | None = timedelta(days=5)  # none: for ever
    keep_last: int = 10


@dataclass(frozen=True, slots=True)
class CleanUp:
    """How old an unreferenced file must be to be removed; None: never."""

    older_than: timedelta | None


@dataclass(frozen=True, slots=True)
class Orphans:
    """Which orphan files are removed, and whether to a trash."""

    older_than: timedelta | None = timedelta(days=3)  # none: never
    max_share: float = 0.5  # of the folder's files, and of its bytes, that one run may remove
    trash: str | None = None  # a folder that they are moved to; none: they are deleted
    trash_keep: timedelta = timedelta(days=7)  # how long they stay there
    outside: bool = False  # whether folders outside that the table writes to are its alone, and looked at


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may do at most."""

    bytes: int | None = None  # rewritten


@dataclass(frozen=True, slots=True)
class Policy:
    """All settings by which a table is maintained."""

    statistics: Statistics = field(default_factory=Statistics)
    indexes: tuple[WantedIndex, ...] = ()
    compaction: Compaction = field(default_factory=Compaction)
    deletes: Deletes = field(default_factory=Deletes)
    manifests: Manifests = field(default_factory=Manifests)
    snapshots: Snapshots = field(default_factory=Snapshots)
    orphans: Orphans = field(default_factory=Orphans)
    statistics_files: CleanUp = field(default_factory=lambda: CleanUp(timedelta(days=1)))
    quiet_hours: tuple[QuietHours, ...] = ()  # when nothing is done to the table
    limits: RunLimits = field(default_factory=RunLimits)
    verify: Verify = Verify.COUNT


DEFAULT = Policy()
