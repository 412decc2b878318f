"""One root, one line, a hint; and errors that cross process borders whole."""

from __future__ import annotations

import copy
import pickle

import pytest

from rookery.model import (
    CatalogError,
    FormatError,
    MachineError,
    Place,
    RookeryError,
    StorageError,
    UsageError,
)
from rookery.puffin import DeletionVectorError, PuffinError, PuffinLimitError, UnsupportedPuffinError

PLAIN = [RookeryError, UsageError, MachineError, CatalogError, StorageError]
FORMATS = [FormatError, PuffinError, UnsupportedPuffinError, PuffinLimitError, DeletionVectorError]


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("clone", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_plain_errors_survive_a_copy(kind: type[RookeryError], clone: object) -> None:
    error = clone(kind("what is wrong", hint="what to do"))  # type: ignore[operator]
    assert type(error) is kind
    assert (str(error), error.message, error.hint) == ("what is wrong", "what is wrong", "what to do")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("clone", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_format_errors_survive_a_copy(kind: type[FormatError], clone: object) -> None:
    error = clone(kind(Place("f", 7), "x", "y", hint="z"))  # type: ignore[operator]
    assert type(error) is kind
    assert str(error) == "f, byte 7: expected x, found y"
    assert (error.place, error.expected, error.found, error.hint) == (Place("f", 7), "x", "y", "z")


@pytest.mark.parametrize(
    ("kind", "builtin"), [(UsageError, ValueError), (StorageError, OSError), (FormatError, ValueError)]
)
def test_builtin_bases(kind: type[RookeryError], builtin: type[Exception]) -> None:
    assert issubclass(kind, RookeryError)
    assert issubclass(kind, builtin)


def test_place() -> None:
    assert str(Place("a.puffin", 3).at(4)) == "a.puffin, byte 7"
