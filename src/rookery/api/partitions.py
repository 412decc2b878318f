"""Which files a person means by `region=EU,day=2024-05-01`."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import UsageError
from rookery.tables.iceberg import IcebergTable


def partition_test(table: IcebergTable, text: str) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """Return a test for zone maps: the files whose partition has these values, in whatever spec."""
    wanted = _parse(text)
    specs = table.table.specs()
    names = {spec_id: [field.name for field in spec.fields] for spec_id, spec in specs.items()}
    known = {name for fields in names.values() for name in fields}
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
        return np.array([cache.setdefault(row, _matches(row, names, wanted)) for row in rows], bool)

    return test


def _matches(row: tuple[int, str], names: dict[int, list[str]], wanted: dict[str, str]) -> bool:
    values = dict(zip(names[row[0]], json.loads(row[1]), strict=True))
    return all(name in values and _shown(values[name]) == value for name, value in wanted.items())


def _shown(value: object) -> str:
    if value is None:
        return "null"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _parse(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and separator for name, separator, _ in pairs):
        raise UsageError(
            f"'{text}' does not name a partition", hint="say field=value, or several with commas"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}
