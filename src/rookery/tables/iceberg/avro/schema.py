"""Avro's schemas in JSON: what a type is, and what a name refers to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rookery.model import FormatError, Place

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})
_DEEPEST = 64
_LARGEST_FIXED = 1 << 20


def parse(text: bytes, place: Place) -> Any:
    """Return a schema as JSON holds it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(place, "an Avro schema in JSON", str(error)) from error


class Names:
    """Resolves types in the order in which a schema defines them: a name may be used once it is defined."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._known: dict[str, dict[str, Any]] = {}
        self._open: list[str] = []
        self._spaces = [""]

    def resolve(self, schema: Any) -> tuple[str, Any]:
        """Return the kind of a type (`union`, a primitive, `record`, …) and its definition."""
        for _ in range(_DEEPEST):  # a type may be wrapped: {"type": {"type": "int"}}
            if isinstance(schema, list):
                return "union", schema
            if isinstance(schema, str):
                return (schema, {}) if schema in PRIMITIVES else self._named(schema)
            if not isinstance(schema, dict) or "type" not in schema:
                break
            kind = schema["type"]
            if isinstance(kind, str) and kind in (NAMED | {"array", "map"}):
                return self._define(kind, schema)
            if isinstance(kind, str) and kind in PRIMITIVES:
                return kind, schema
            schema = kind
        raise self.error("an Avro type", schema)

    def _define(self, kind: str, schema: dict[str, Any]) -> tuple[str, Any]:
        if kind in NAMED:
            name = self._full(schema.get("name"), schema.get("namespace"))
            if name in self._open:
                raise self.error("types that do not contain themselves", name)
            # By its full name, a type is the same in all references.
            schema = self._known[name] = {**schema, "name": name, "namespace": ""}
        return ("record" if kind == "error" else kind), schema

    def _named(self, name: str) -> tuple[str, Any]:
        schema = self._known.get(self._full(name, None)) or self._known.get(name)
        if schema is None:
            raise self.error("a type, or the name of one", name)
        return self._define(schema["type"], schema)

    def _full(self, name: Any, space: Any) -> str:
        if not isinstance(name, str) or not isinstance(space, str | None):
            raise self.error("a type with a name", name)
        space = self._spaces[-1] if space is None else space
        return name if "." in name or not space else f"{space}.{name}"

    @contextmanager
    def inside(self, schema: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Yield a record's fields, while it is open: none of them may contain it."""
        name = str(schema["name"])
        if len(self._open) >= _DEEPEST:
            raise self.error("records that nest less deep", name)
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise self.error(f"fields of the record {name}", fields)
        self._open.append(name)
        self._spaces.append(name.rpartition(".")[0])
        yield fields
        self._open.pop()
        self._spaces.pop()

    def fixed_size(self, schema: dict[str, Any]) -> int:
        """Return the size of a fixed type."""
        size = schema.get("size")
        if not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
            raise self.error("the size of a fixed type", size)
        return size

    def error(self, expected: str, found: Any) -> FormatError:
        """Return an error about the schema."""
        text = found if isinstance(found, str) else json.dumps(found)
        return FormatError(self.place, f"{expected} in the schema", text[:200])
