"""Selecting files by partition values, as in `region=EU,day=2024-05-01`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.api.values import plain
from rookery.model import UsageError
from rookery.model.type_names import base_type, scale_of
from rookery.tables import Table
from rookery.tables.partitioning import PartitionField, TransformKind
from rookery.values.canonical import decimal_of

Shower = Callable[[Any], str | None]  # None for null


def partition_test(table: Table, text: str) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """Return a test for zone maps: the files whose partition has these values, in any spec."""
    wanted = _parse(text)
    # A spec may partition by a column that has been dropped.
    types = table.column_types
    shown = {
        spec_id: [(field.name, _shower(field, types)) for field in spec]
        for spec_id, spec in table.specs.items()
    }
    known = {field.name for spec in table.specs.values() for field in spec if _is_kept(field)}
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


def _is_kept(field: PartitionField) -> bool:
    """Whether a field has values: one that was removed in format version 1 has null throughout."""
    return field.transform.kind is not TransformKind.OTHER


def _shower(field: PartitionField, types: Mapping[int, str]) -> Shower | None:
    """How the values of a partition field are written: those of times as people write them."""
    transform, kind = field.transform, types.get(field.source_id, "")
    if not _is_kept(field):
        return None

    def show(value: Any) -> str | None:
        if value is None:
            return None
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
    if base_type(kind) == "decimal":
        return str(decimal_of(value, scale_of(kind)))
    return str(plain(kind, value))


def _matches(
    row: tuple[int, str], fields: list[tuple[str, Shower | None]], wanted: dict[str, str | None]
) -> bool:
    values = zip(fields, json.loads(row[1]), strict=True)
    shown_values = {name: show(value) for (name, show), value in values if show is not None}
    return all(name in shown_values and shown_values[name] == value for name, value in wanted.items())


def _parse(text: str) -> dict[str, str | None]:
    """Read the values that are wanted by field; `null` is null, and the text in quotes.

    >>> _parse("day=2024-05-01, region=null, word='null'")
    {'day': '2024-05-01', 'region': None, 'word': 'null'}
    """
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and separator for name, separator, _ in pairs):
        raise UsageError(
            f"'{text}' does not name a partition", hint="use field=value, or several with commas"
        )
    names = [name.strip() for name, _, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the partition field '{twice}' is named twice", hint="name each field once")
    return {name: _value(value.strip()) for name, (_, _, value) in zip(names, pairs, strict=True)}


def _value(text: str) -> str | None:
    if text == "null":
        return None
    is_quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1] if is_quoted else text
