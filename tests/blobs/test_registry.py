"""The registry: each module of a type is listed, described in the docs, and takes any bytes."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from rookery import blobs
from rookery.blobs import BLOB_TYPES, CHECKS, KNOWN, BlobType, is_carried
from rookery.model import CheckOutcome, FormatError
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, BlobMetadata
from rookery.sketch import blob_types

FORMATS = Path(__file__).parents[2] / "docs" / "formats"
BLOB = BlobMetadata("any", (1,), 7, 1, 4, 100)
TYPES = pytest.mark.parametrize("kind", BLOB_TYPES, ids=lambda kind: kind.name)


def test_every_module_is_listed() -> None:
    names = [f"{blobs.__name__}.{module.name}" for module in pkgutil.iter_modules(blobs.__path__)]
    found = [getattr(importlib.import_module(name), "BLOB_TYPE", None) for name in names]
    assert {kind.name for kind in found if kind is not None} == {kind.name for kind in BLOB_TYPES}
    assert len(KNOWN) == len(BLOB_TYPES)


def test_every_name_has_a_type() -> None:
    names = {value for name, value in vars(blob_types).items() if name.endswith("_V1")}
    assert names | {THETA_V1, DELETION_VECTOR_V1} == set(KNOWN)


@TYPES
def test_every_type_has_its_page(kind: BlobType) -> None:
    assert f"`{kind.name}`" in (FORMATS / f"{kind.page}.md").read_text()
    assert kind.holds


@TYPES
@pytest.mark.parametrize("payload", [b"", b"x", bytes(8), b"\xff" * 64])
def test_bytes_that_are_something_else(kind: BlobType, payload: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        kind.summarize(BLOB, payload, "s3://bucket/file.puffin")
    assert caught.value.place.file == "s3://bucket/file.puffin"
    checks = list(CHECKS[kind.name]("blob 0", BLOB, payload))
    assert CheckOutcome.FINDING in {check.outcome for check in checks}
    assert {check.subject for check in checks} == {"blob 0"}


def test_what_is_carried() -> None:
    assert [kind.name for kind in BLOB_TYPES if is_carried(kind.name)] == [blob_types.HLL_V1]
    assert is_carried("of-another-writer-v3")
