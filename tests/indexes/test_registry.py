"""What every kind must be, and that nothing but the registry knows one by its name."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import rookery.indexes
from rookery.indexes import KINDS, kind_for
from rookery.model import Field
from rookery.sidecar import Index
from tests.indexes.toy import LengthsKind

INDEXES = Path(rookery.indexes.__file__).parent


@pytest.mark.parametrize("kind", [*KINDS.values(), LengthsKind()], ids=lambda kind: kind.name)
class TestEachKind:
    def test_is_told_apart(self, kind: LengthsKind) -> None:
        assert kind.name.isidentifier()  # policies write it as name(column)
        others = [other for other in (*KINDS.values(), LengthsKind()) if other.name != kind.name]
        assert kind.blob_type not in [other.blob_type for other in others]
        assert kind.stage not in [other.stage for other in others]
        assert "\n" not in kind.summary

    def test_can_be_sent(self, kind: LengthsKind) -> None:
        assert type(pickle.loads(pickle.dumps(kind))) is type(kind)

    def test_serves_no_list(self, kind: LengthsKind) -> None:
        index = Index(kind.name, 1, "string")
        assert kind.serves(Field(1, "c", "string"))
        assert not kind.serves(Field(1, "c.element", "string", repeated=True))
        known = kind.name in KINDS
        assert (kind_for(index, Field(1, "c", "string")) is not None) == known


def _named(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_nothing_else_names_a_kind() -> None:
    kinds = {*KINDS, *(type(kind).__module__ for kind in KINDS.values())}
    assert len(kinds) == 2 * len(KINDS)
    named = {
        str(path.relative_to(INDEXES.parent)): sorted(kinds.intersection(_named(ast.parse(path.read_text()))))
        for path in INDEXES.parent.rglob("*.py")
        if path.parent not in (INDEXES, INDEXES.parent / "blobs")  # where blobs name their format pages
    }
    assert {name: found for name, found in named.items() if found} == {}
