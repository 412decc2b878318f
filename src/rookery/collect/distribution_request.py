"""Which histograms and frequent values are to be collected; `status` needs this, and no numba."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from rookery.model import Field
from rookery.sidecar import State


@dataclass(frozen=True, slots=True)
class DistributionRequest:
    """The request: columns of histograms and of frequent values, from so many row groups per file."""

    histogram: tuple[Field, ...] = ()
    top_k: tuple[Field, ...] = ()
    sample: int = 0  # 0 for all

    def are_in(self, state: State) -> bool:
        """Whether a state has just these, declared and collected."""
        header = state.header.rows
        if header is None or not self.fields:
            return header is None and not self.fields
        ids = (tuple(c.id for c in self.histogram), tuple(c.id for c in self.top_k))
        return ids == (header.histogram, header.top_k) and self.are_collected_in(state)

    def are_collected_in(self, state: State) -> bool:
        """Whether a state has these, from the same sample, among others."""
        return (
            state.header.rows is not None
            and state.header.rows.sample == self.sample
            and all(column.id in state.quantiles for column in self.histogram)
            and all(column.id in state.frequent for column in self.top_k)
        )

    def without(self, ids: Set[int]) -> DistributionRequest:
        """Return the request without some columns: sketches of some rows must not pass for all."""
        return DistributionRequest(
            tuple(column for column in self.histogram if column.id not in ids),
            tuple(column for column in self.top_k if column.id not in ids),
            self.sample,
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        """All columns that must be read."""
        return tuple(dict.fromkeys((*self.histogram, *self.top_k)))
