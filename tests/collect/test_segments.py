"""What becomes of the parts that several tasks have read of one file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rookery.collect.plan import Group, IndexColumn
from rookery.collect.segments import fold_shared
from rookery.collect.task import Costs, Partial
from rookery.model import Field
from rookery.sidecar.state import Index, IndexKind
from rookery.sketch.bloom import BLOCK_SIZE, BloomFilter

FIELD = Field(1, "k", "long")
BLOOM = IndexColumn(Index(IndexKind.BLOOM, 1, "long", 0.01), FIELD)
BITMAP = IndexColumn(Index(IndexKind.BITMAP, 1, "long"), FIELD)


@pytest.mark.parametrize("indexes", [(BLOOM,), (BLOOM, BITMAP), (BITMAP, BLOOM)])
def test_filters_are_folded_whatever_other_indexes_the_column_has(indexes: tuple[IndexColumn, ...]) -> None:
    wide = BloomFilter.from_bytes(bytes(1024 * BLOCK_SIZE))
    partial = Partial(0, {}, Costs(), blooms={1: {0: wide, 1: wide}})
    group = Group(0, pa.table({}), (FIELD,), indexes)
    found = fold_shared(partial, group, {(0, 0)}).blooms[1]
    assert (found[0].blocks, found[1].blocks) == (1, 1024)
