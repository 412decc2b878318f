"""HLL sketches of Apache DataSketches: the number of distinct values, from registers.

A sketch of few values keeps a coupon of each; of many, the greatest value that each of its registers has
seen. It is smaller than a theta sketch of the same error, and can be merged, but not intersected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import datasketches

from rookery.model import IN_MEMORY, Certainty, Estimate, Place
from rookery.sketch.hll_layout import HllError, HllKind, Mode, compact_form, read_preamble


@dataclass(frozen=True, eq=False, slots=True)
class HllSketch:
    """A sketch as an object of the library; it is not changed here."""

    sketch: Any

    @property
    def lg_k(self) -> int:
        """The logarithm, to base 2, of the number of registers."""
        return int(self.sketch.lg_config_k)

    @property
    def kind(self) -> HllKind:
        """How wide the registers are."""
        return HllKind(self.sketch.tgt_type.value)

    @property
    def mode(self) -> Mode:
        """How values are stored."""
        return read_preamble(self.encode(), IN_MEMORY).mode

    @property
    def is_empty(self) -> bool:
        """Whether it has seen no value at all."""
        return bool(self.sketch.is_empty())

    def estimate(self, deviations: int = 2) -> Estimate:
        """Return the number of distinct values, with bounds at that many standard deviations."""
        if self.is_empty:
            return Estimate.exact(0)
        value = self.sketch.get_estimate()
        low = min(value, self.sketch.get_lower_bound(deviations))
        high = max(value, self.sketch.get_upper_bound(deviations))
        return Estimate(value, low, high, Certainty.SKETCHED)

    def merge(self, other: HllSketch) -> HllSketch:
        """Return the sketch of both, as precise as the less precise; an empty one changes nothing."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        lg_k, kind = min(self.lg_k, other.lg_k), max(self.kind, other.kind)
        return HllSketch(_union(lg_k, kind, self._reduced(lg_k).sketch, other._reduced(lg_k).sketch))

    def _reduced(self, lg_k: int) -> HllSketch:
        """The same values in fewer registers.

        Each sketch separately: a union that has reduced one takes itself for empty, and drops it at the next.
        """
        return self if self.lg_k == lg_k else HllSketch(_union(lg_k, HllKind.HLL_8, self.sketch))

    def encode(self) -> bytes:
        """Return the compact form, which the Java library reads too; equal sketches have equal bytes."""
        return compact_form(bytes(self.sketch.serialize_compact()), IN_MEMORY)

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read a compact or an updatable form, in any mode and of any kind."""
        checked = compact_form(payload, place)
        try:
            return cls(datasketches.hll_sketch.deserialize(checked))
        except (ValueError, TypeError, IndexError, RuntimeError, MemoryError) as error:
            raise HllError(place, "an HLL sketch", str(error)) from error


def _union(lg_k: int, kind: HllKind, *sketches: Any) -> Any:
    union = datasketches.hll_union(lg_k)
    for sketch in sketches:
        union.update(sketch)
    return union.get_result(datasketches.tgt_hll_type(kind))
