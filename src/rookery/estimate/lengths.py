"""How long the text and binary values of a column are, in each file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.prune.fileset import FileSet


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLengths:
    """The values of each file that are not null, their bytes, and those of the longest; 0 if not known."""

    values: NDArray[np.int64]
    bytes: NDArray[np.int64]
    greatest: NDArray[np.int64]

    @classmethod
    def of(cls, files: FileSet, field_id: int) -> Self:
        """Read the lengths of a column from the segments of the state."""
        arrays = {name: np.zeros(len(files), np.int64) for name in ("values", "bytes", "greatest")}
        for place in files.places:
            known = files.segment(place.segment).lengths([field_id]).get(field_id)
            if known is not None:
                here = known.take(pa.array(place.ordinals))
                stated = here["values"].is_valid().combine_chunks().to_numpy(zero_copy_only=False)
                for name, array in arrays.items():
                    numbers = here[name].fill_null(0).to_numpy()
                    array[place.numbers[stated]] = numbers[stated]
        return cls(**arrays)

    @property
    def nbytes(self) -> int:
        """Its memory."""
        return int(self.values.nbytes + self.bytes.nbytes + self.greatest.nbytes)

    def among(self, keep: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Return the average length, rounded up, and the greatest of the files that are left.

        None if no value is known in them. Files without lengths are assumed to be like the others.
        """
        values = float(self.values[keep].sum(dtype=np.float64))
        if not values:
            return None
        average = math.ceil(float(self.bytes[keep].sum(dtype=np.float64)) / values)
        return average, int(self.greatest[keep].max())
