"""Declarations on a table, independent of snapshots: indexes, and statistics beyond those of each column.

Every state lists those it knows, and when each was last declared or dropped. If states are merged, the latest
entry of each counts; so neither a rollback nor two writers at once can lose one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rookery.model import Field
from rookery.sidecar.state import Index, State, StateHeader, Statistic

HISTOGRAM = "histogram"
TOP_K = "top-k"
COLUMN_SET = "column-set"
SAMPLE = "sample"  # of how many row groups a file histograms and frequent values are made
ROW_GROUPS = "row-groups"

_Entry = TypeVar("_Entry", Index, Statistic)


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared, the oldest first, and when each was last declared or dropped."""

    indexes: tuple[Index, ...] = ()
    at: Mapping[str, int] = field(default_factory=dict)
    statistics: tuple[Statistic, ...] = ()
    statistics_at: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, header: StateHeader) -> Declared:
        """Return what a state declares; one of a version without declarations, what it has."""
        known = {each.key for each in header.statistics} | header.statistics_at.keys()
        collected = {each.key: each for each in _collected(header) if each.key not in known}
        return cls(
            header.indexes,
            header.declared_at,
            (*collected.values(), *header.statistics),
            header.statistics_at,
        )

    def adding(self, index: Index, now: int) -> Declared:
        """Return it with an index more, in place of one of that kind on that column."""
        left = self.dropping(index, now)
        return replace(left, indexes=(*left.indexes, index))

    def dropping(self, index: Index, now: int) -> Declared:
        """Return it without the index of that kind on that column."""
        return replace(self, indexes=_without(self.indexes, index), at=_noted(self.at, index.key, now))

    def adding_statistic(self, statistic: Statistic, now: int) -> Declared:
        """Return it with a statistic more, in place of one of that kind on these columns."""
        left = self.dropping_statistic(statistic, now)
        return replace(left, statistics=(*left.statistics, statistic))

    def dropping_statistic(self, statistic: Statistic, now: int) -> Declared:
        """Return it without the statistic of that kind on these columns."""
        return replace(
            self,
            statistics=_without(self.statistics, statistic),
            statistics_at=_noted(self.statistics_at, statistic.key, now),
        )

    def columns(self, kind: str) -> frozenset[int]:
        """Return the ids of the columns that have a kind of statistic of their own."""
        return frozenset(
            each.field_ids[0] for each in self.statistics if each.kind == kind and each.field_ids
        )

    @property
    def column_sets(self) -> tuple[tuple[int, ...], ...]:
        """The columns that are counted together, by their ids."""
        return tuple(each.field_ids for each in self.statistics if each.kind == COLUMN_SET)

    @property
    def sample(self) -> int:
        """How many row groups a file are read for histograms and frequent values; 0 for all."""
        samples = [each for each in self.statistics if each.kind == SAMPLE]
        text = dict(samples[-1].options).get(ROW_GROUPS, "") if samples else ""
        return int(text) if text.isdecimal() else 0

    def typed(self, fields: Sequence[Field]) -> Declared:
        """Return it with the types that columns have now; an index of another type is another index."""
        types = {column.id: column.type for column in fields}
        return replace(
            self,
            indexes=tuple(replace(each, type=types.get(each.field_id, each.type)) for each in self.indexes),
        )

    def on(self, state: State) -> State:
        """Return a state that declares this."""
        return replace(
            state,
            header=replace(
                state.header,
                indexes=self.indexes,
                declared_at=self.at,
                statistics=self.statistics,
                statistics_at=self.statistics_at,
            ),
        )


def joined(parts: Iterable[Declared]) -> Declared:
    """Merge several; of two entries with the same time, the first counts.

    >>> one = Declared().adding(Index("bitmap", 3, "int"), now=5)
    >>> joined([one, one.dropping(one.indexes[0], now=6)])
    Declared(indexes=(), at={'bitmap 3': 6}, statistics=(), statistics_at={})
    """
    parts = list(parts)
    indexes, at = _latest([(each.indexes, each.at) for each in parts])
    statistics, statistics_at = _latest([(each.statistics, each.statistics_at) for each in parts])
    return Declared(indexes, at, statistics, statistics_at)


def _latest(
    parts: Sequence[tuple[Sequence[_Entry], Mapping[str, int]]],
) -> tuple[tuple[_Entry, ...], dict[str, int]]:
    latest: dict[str, tuple[int, _Entry | None]] = {}
    for entries, times in parts:
        by_key: dict[str, _Entry | None] = {**dict.fromkeys(times), **{each.key: each for each in entries}}
        for key, entry in by_key.items():
            at = times.get(key, 0)
            if key not in latest or at > latest[key][0]:
                latest[key] = (at, entry)
    order = sorted(latest, key=lambda key: (latest[key][0], key))
    last_entries = (latest[key][1] for key in order)
    return tuple(each for each in last_entries if each is not None), {key: latest[key][0] for key in order}


def _noted(times: Mapping[str, int], key: str, now: int) -> dict[str, int]:
    """Note a change; it is later than the last one, also if that was made by a clock that is ahead."""
    return {**times, key: max(now, times.get(key, 0) + 1)}


def _without(entries: Sequence[_Entry], dropped: _Entry) -> tuple[_Entry, ...]:
    return tuple(each for each in entries if each.key != dropped.key)


def _collected(header: StateHeader) -> Iterable[Statistic]:
    """The statistics that a state has collected: in versions without declarations, all of them."""
    rows = header.rows
    if rows is not None:
        yield from (Statistic(HISTOGRAM, (number,)) for number in rows.histogram)
        yield from (Statistic(TOP_K, (number,)) for number in rows.top_k)
        if rows.sample:
            yield sample_of(rows.sample)
    yield from (Statistic(COLUMN_SET, members) for members in header.column_sets.values() if members)


def sample_of(row_groups: int) -> Statistic:
    """Return the declaration of a sample of so many row groups a file."""
    return Statistic(SAMPLE, (), ((ROW_GROUPS, str(row_groups)),))
