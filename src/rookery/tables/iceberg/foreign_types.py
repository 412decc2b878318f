"""Types of columns that PyIceberg does not know: carried through its model as the table's metadata has them.

PyIceberg refuses a whole table for one such column. Where Rookery loads a table, each of these types becomes
a `ForeignType` before PyIceberg sees it; all other tables are parsed by PyIceberg as usual. Geometries are
among them: PyIceberg knows some of their notations, and writes those in another way than it has read them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, Field, model_serializer
from pyiceberg.conversions import from_json, to_json
from pyiceberg.table.metadata import TableMetadataWrapper
from pyiceberg.types import PrimitiveType

from rookery.model.type_names import SKETCHED, base_type
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1

_BARE = ("decimal", "fixed")  # without what these must have
_REST = "pyiceberg.catalog.rest"  # imported by PyIceberg when a REST catalog is opened
_NAMED = re.compile(r'"(?:type|element|key|value)"\s*:\s*"([^"]*)"')
# Other values of `type` in metadata: of nested columns, refs and statistics.
_NO_TYPES = frozenset({"struct", "list", "map", "branch", "tag", THETA_V1, DELETION_VECTOR_V1})
_loading: ContextVar[bool] = ContextVar("rookery_loading", default=False)


class ForeignType(PrimitiveType):
    """A type of which only its text is known; it is written as it was read.

    >>> kind = ForeignType("geometry(srid:0)")
    >>> str(kind), kind.model_dump()
    ('geometry(srid:0)', 'geometry(srid:0)')
    """

    # A name, or the JSON text of an object; in a tuple, as PyIceberg treats every text as the name of a type.
    root: tuple[str] = Field()

    def __init__(self, text: str) -> None:
        super().__init__(root=(text,))

    @model_serializer
    def _as_it_was_read(self) -> Any:
        (text,) = self.root
        return json.loads(text) if text.startswith("{") else text

    def __str__(self) -> str:
        (text,) = self.root
        return f"{text}(?)" if text in _BARE else text  # never the name of a type that is known

    def __repr__(self) -> str:
        return f"ForeignType({self.root[0]!r})"

    def __getnewargs__(self) -> tuple[str]:
        return self.root


@from_json.register(ForeignType)
def _(_: ForeignType, value: Any) -> str:
    """Keep a default as JSON text: its form depends on its type."""
    return json.dumps(value)


@to_json.register(ForeignType)
def _(_: ForeignType, value: str) -> Any:
    return json.loads(value)


def is_known(text: str) -> bool:
    """Whether a type is one that PyIceberg reads, and writes as it was.

    >>> [is_known(name) for name in ("long", "decimal(9,2)", "variant", "decimal(9, 2) unsigned")]
    [True, True, False, False]
    """
    return text == "unknown" or (base_type(text) in SKETCHED and text not in _BARE)


def carried(kind: Any) -> Any:
    """Return the JSON of a type, or of a schema, with every type in it that PyIceberg does not know replaced.

    >>> carried({"type": "list", "element-id": 3, "element": "variant", "element-required": False})["element"]
    ForeignType('variant')
    """
    if isinstance(kind, str):
        return kind if is_known(kind) else ForeignType(kind)
    if not isinstance(kind, dict):
        return kind  # PyIceberg raises the error
    name = kind.get("type")
    if name == "struct":
        return kind | {"fields": [_field(field) for field in kind.get("fields") or ()]}
    if name in ("list", "map"):
        inner = {key: carried(kind[key]) for key in ("element", "key", "value") if key in kind}
        return kind | inner
    return ForeignType(json.dumps(kind))


def _field(field: Any) -> Any:
    return field | {"type": carried(field["type"])} if isinstance(field, dict) and "type" in field else field


def _carried_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(metadata)
    if isinstance(changed.get("schema"), dict):  # of format version 1
        changed["schema"] = carried(changed["schema"])
    if isinstance(changed.get("schemas"), list):
        changed["schemas"] = [carried(schema) for schema in changed["schemas"]]
    return changed


@contextmanager
def carrying() -> Iterator[None]:
    """Allow tables with types that PyIceberg does not know to be loaded, in this thread."""
    _hook(TableMetadataWrapper)
    if _REST in sys.modules:
        _hook(sys.modules[_REST].TableResponse)
    token = _loading.set(True)
    try:
        yield
    finally:
        _loading.reset(token)


def _hook(model: type[BaseModel]) -> None:
    """Parse a model with table metadata with foreign types, inside of `carrying` only."""
    if "model_validate_json" in vars(model):
        return
    validate_json = model.model_validate_json

    def parse(_: type[BaseModel], /, json_data: str | bytes, **options: Any) -> BaseModel:
        changed = _with_foreign_types(json_data) if _loading.get() else None
        return validate_json(json_data, **options) if changed is None else model.model_validate(changed)

    model.model_validate_json = classmethod(parse)  # type: ignore[method-assign, assignment]


def _named(text: str | bytes) -> list[str]:
    """All texts that may be names of types; escaped ones as they are written."""
    return _NAMED.findall(text.decode(errors="replace") if isinstance(text, bytes) else text)


def _with_foreign_types(text: str | bytes) -> dict[str, Any] | None:
    """Parse a metadata file, or the answer of a REST server; None where PyIceberg knows all types."""
    if all(name in _NO_TYPES or is_known(name) for name in set(_named(text))):
        return None  # as nearly always, so that it is parsed once
    try:
        parsed = json.loads(text)
    except ValueError:
        return None  # PyIceberg raises the error
    if not isinstance(parsed, dict):
        return None
    inner = parsed.get("metadata")
    changed = (
        parsed | {"metadata": _carried_metadata(inner)}
        if isinstance(inner, dict)
        else _carried_metadata(parsed)
    )
    return None if changed == parsed else changed
