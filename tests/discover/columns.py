"""Facts of columns, made of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rookery.discover import ColumnFacts
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow

ARROW = {"long": pa.int64(), "int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us")}


def column(table: str, name: str, values: Any, kind: str = "long", **more: Any) -> ColumnFacts:
    """The facts that a state and bounds would give, of values that are not null."""
    array = pa.array(values, ARROW[kind])
    builder = ThetaBuilder()
    add_arrow(builder, kind, array)
    numbers = np.asarray(values) if kind in ("long", "int") else None
    ends = {} if numbers is None else {"low": int(numbers.min()), "high": int(numbers.max()), "tight": True}
    return ColumnFacts(table, (name,), (kind,), builder.result(), len(array), **{**ends, **more})
