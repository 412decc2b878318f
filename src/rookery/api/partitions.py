"""Selecting files by partition values, as in `region=EU,day=2024-05-01`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.api.values import plain
from rookery.model import UsageError
from rookery.tables import Table
from rookery.tables.partitioning import PartitionField, TransformKind

Shower = Callable[[Any], str]


def partition_test(table: Table, text: str) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """Return a test for zone maps: the files whose partition has these values, in any spec."""
    wanted = _parse(text)
    # A spec may partition by a column that has been dropped.
    types = table.column_types
    shown = {
        spec_id: [(field.name, _shower(field, types)) for field in spec]
        for spec_id, spec in table.specs.items()
    }
    known = {name for fields in shown.values() for name, _ in fields}
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"{table.name} is not partitioned by '{name}'",
                hint=f"its partition fields are {', '.join(sorted(known))}"
                if known
                else "it has no partitions",
            )

    def test(zone_map: pa.Table) -> NDArray[np.bool_]:
        cache: dict[tuple[int, str], bool] = {}
        rows = zip(zone_map["spec_id"].to_pylist(), zone_map["partition"].to_pylist(), strict=True)
        return np.array([cache.setdefault(row, _matches(row, shown[row[0]], wanted)) for row in rows], bool)

    return test


def _shower(field: PartitionField, types: Mapping[int, str]) -> Shower:
    """How the values of a partition field are written: those of times as people write them."""
    transform, kind = field.transform, types.get(field.source_id, "")

    def show(value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, bool):
            return json.dumps(value)
        if transform.kind in (TransformKind.IDENTITY, TransformKind.TRUNCATE):
            return _written(kind, value)
        if transform.kind is TransformKind.BUCKET:
            return str(value)
        return transform.shown(value)

    return show


def _written(kind: str, value: Any) -> str:
    """A value of a column, from its form in partitions.

    >>> _written("decimal(9, 2)", -1205), _written("date", 19844)
    ('-12.05', '2024-05-01')
    >>> _written("uuid", "f79c3e09677c4bbda4793f349cb785e7")
    'f79c3e09-677c-4bbd-a479-3f349cb785e7'
    """
    if kind == "uuid":
        return str(UUID(hex=value))
    if kind.startswith("decimal("):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        digits = tuple(map(int, str(abs(value))))
        return str(Decimal((int(value < 0), digits, -scale)))
    return str(plain(kind, value))


def _matches(row: tuple[int, str], fields: list[tuple[str, Shower]], wanted: dict[str, str]) -> bool:
    values = zip(fields, json.loads(row[1]), strict=True)
    shown_values = {name: show(value) for (name, show), value in values}
    return all(shown_values.get(name) == value for name, value in wanted.items())


def _parse(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and separator for name, separator, _ in pairs):
        raise UsageError(
            f"'{text}' does not name a partition", hint="use field=value, or several with commas"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}
