"""Tables with columns of types that PyIceberg does not know, made without an engine.

A table is written with binary columns; then its metadata says that they are of another type. So its files
and manifests have values, counts and bounds of these columns, as those of a geometry are stored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from rookery.api.lake import Lake, connect
from rookery.io import local_path
from tests.lakehouse import sqlite_options

FUTURE = "quaternion(3)"  # known to nobody
OBJECT = {"type": "tensor", "shape": [2, 3], "of": "int"}
KINDS = (
    "variant",
    "geometry",
    "geometry(srid:0)",
    "geography(srid:4326, karney)",
    FUTURE,
    "decimal(9, 2) unsigned",
    "fixed-point(3)",
    OBJECT,
)
FILES, ROWS = 4, 10  # rows of each file
FOREIGN = ("g", "s.g", "l.element", "m.value", "late")
OTHERS = ("n", "w", "s.x", "m.key")
_SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("g", pa.binary()),
        ("w", pa.string()),
        ("s", pa.struct([("x", pa.string()), ("g", pa.binary())])),
        ("l", pa.list_(pa.binary())),
        ("m", pa.map_(pa.string(), pa.binary())),
    ]
)


def rows_from(start: int) -> pa.Table:
    """The rows of one file, numbered from *start*."""
    numbers = range(start, start + ROWS)
    values = [bytes([number]) for number in numbers]
    return pa.table(
        {
            "n": list(numbers),
            "g": values,
            "w": [f"w{number % 5}" for number in numbers],
            "s": [{"x": f"x{number % 3}", "g": bytes([number])} for number in numbers],
            "l": [[value] for value in values],
            "m": [[("k", value)] for value in values],
        },
        schema=_SCHEMA,
    )


def foreign_lake(folder: Path, kind: Any, version: int = 3) -> Lake:
    """A SQLite catalog with one table, db.t, whose binary columns are said to be of *kind*."""
    lake = connect(**sqlite_options(folder))
    make_foreign(lake, "db.t", kind, version)
    return lake


def make_foreign(lake: Lake, name: str, kind: Any, version: int = 3) -> None:
    """Make a table whose binary columns are said to be of *kind*."""
    lake.catalog.create_namespace_if_not_exists("db")
    table = lake.catalog.create_table(name, _SCHEMA)
    for number in range(FILES):
        table.append(rows_from(number * ROWS))
    path = Path(local_path(table.metadata_location))
    path.write_text(json.dumps(retyped(json.loads(path.read_text()), kind, version)))


def retyped(metadata: dict[str, Any], kind: Any, version: int) -> dict[str, Any]:
    """Return the metadata with every binary column of another type, and one that files do not have."""
    last = metadata["last-column-id"] + 1
    for schema in metadata["schemas"]:
        _retype(schema, kind)
        schema["fields"].append({"id": last, "name": "late", "type": kind, "required": False, "doc": "new"})
    metadata |= {"format-version": version, "last-column-id": last}
    return metadata | ({"next-row-id": FILES * ROWS} if version > 2 else {})


def _retype(node: Any, kind: Any) -> None:
    for key, value in node.items() if isinstance(node, dict) else ():
        if key in ("type", "element", "value") and value == "binary":
            node[key] = kind
        elif isinstance(value, list):
            for part in value:
                _retype(part, kind)
        else:
            _retype(value, kind)


def metadata_text(lake: Lake, name: str = "db.t") -> str:
    """The metadata file of a table, as it lies there."""
    return Path(local_path(lake.load(name).metadata_location)).read_text()


def spelled(kind: Any) -> str:
    """How a type is shown."""
    return kind if isinstance(kind, str) else json.dumps(kind)
