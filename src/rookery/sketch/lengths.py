"""How long the values of a column are: how many there are, their bytes, and the bytes of the longest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of some values that are not null.

    >>> Lengths(2, 7, 4) + Lengths(1, 9, 9)
    Lengths(values=3, bytes=16, greatest=9)
    """

    values: int = 0
    bytes: int = 0
    greatest: int = 0

    def __add__(self, other: Lengths) -> Lengths:
        return Lengths(
            self.values + other.values, self.bytes + other.bytes, max(self.greatest, other.greatest)
        )

    def of_values(self, values: int, stated_bytes: int | None = None) -> Lengths:
        """Return the lengths of so many values, all of which are among these, repeated or not.

        *stated_bytes*, those of all values, are used if values of these lengths can have as many.

        >>> distinct = Lengths(2, 12, 8)
        >>> distinct.of_values(10).bytes, distinct.of_values(10, 44).bytes, distinct.of_values(10, 81).bytes
        (60, 44, 60)
        """
        if not self.values:
            return self
        if stated_bytes is None or not 0 <= stated_bytes <= values * self.greatest:
            stated_bytes = round(values * (self.bytes / self.values))
        return Lengths(values, stated_bytes, self.greatest)
