"""Declaring indexes: what is refused and how it is said, in Python and on the command line."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.cli.app import run
from rookery.model import UsageError
from rookery.sidecar import FILES_SCHEMA, State, StateHeader
from rookery.sketch import ThetaSketch

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("Word", pa.string()),
        ("many", pa.list_(pa.int64())),
        ("s", pa.struct([("x", pa.int32())])),
    ]
)


pytestmark = pytest.mark.usefixtures("shared_catalog")


@pytest.fixture
def name(lake: Lake) -> Iterator[str]:
    lake.catalog.create_namespace_if_not_exists("ix")
    name = f"ix.t{uuid.uuid4().hex[:8]}"
    lake.catalog.create_table(name, SCHEMA)
    yield f"lake.{name}"
    lake.catalog.drop_table(name)


def listed(lake: Lake, name: str) -> list[tuple[str, str, float | None]]:
    return [(view.kind, view.column, view.fpp) for view in rookery.table(name, lake).indexes().indexes]


def test_declare_and_take_back(lake: Lake, name: str) -> None:
    table = rookery.table(name, lake)
    table.add_index("bloom", "id")
    table.add_index("bitmap", "WORD")
    table.add_index("bitmap", "s.x")
    assert listed(lake, name) == [("bloom", "id", 0.001), ("bitmap", "Word", None), ("bitmap", "s.x", None)]
    table.add_index("bloom", "id", fpp=0.05)  # in place of the other
    assert listed(lake, name) == [("bitmap", "Word", None), ("bitmap", "s.x", None), ("bloom", "id", 0.05)]
    table.drop_index("bitmap", "word")
    assert listed(lake, name) == [("bitmap", "s.x", None), ("bloom", "id", 0.05)]
    table.drop_index("bloom", "id")
    table.drop_index("bitmap", "s.x")
    assert listed(lake, name) == []
    with pytest.raises(UsageError, match="has no bloom index on 'id'"):
        table.drop_index("bloom", "id")


REFUSED = {
    "kind": (["btree", "id"], "there is no index 'btree'"),
    "column": (["bloom", "nobody"], "there is no column 'nobody'"),
    "struct": (["bloom", "s"], "there is no column 's'"),
    "list": (["bloom", "many.element"], "in a list or map, cannot be indexed"),
    "list, bitmap": (["bitmap", "many.element"], "in a list or map, cannot be indexed"),
    "rate of 0": (["bloom", "id", "--fpp", "0"], "rate of 0 is not possible"),
    "rate of 1": (["bloom", "id", "--fpp", "1"], "rate of 1 is not possible"),
    "rate below all sense": (["bloom", "id", "--fpp", "1e-15"], "is not possible"),
    "no number": (["bloom", "id", "--fpp", "nan"], "is not possible"),
    "rate of a bitmap": (["bitmap", "Word", "--fpp", "0.1"], "is not possible"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(lake: Lake, name: str, capsys: pytest.CaptureFixture[str], case: str) -> None:
    (kind, column, *more), message = REFUSED[case]
    with pytest.raises(UsageError, match=message.replace("(", "\\(")) as caught:
        rookery.table(name, lake).add_index(kind, column, fpp=float(more[1]) if more else None)
    assert caught.value.hint
    assert run(["index", "add", name, kind, column, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in " ".join(err.split())
    assert "hint:" in err
    assert listed(lake, name) == []


def test_too_many_values_for_a_bitmap(lake: Lake, name: str) -> None:
    """As far as statistics know; the hint says what serves instead."""
    table, store = rookery.table(name, lake).load()
    numbers = np.sort(np.random.default_rng(1).choice(2**40, 1500, replace=False)).astype(np.uint64)
    index = StateHeader(str(table.table.metadata.table_uuid), 1, 1, 0, 9, (), (), (), {1: "long"})
    store.write_state(State(index, FILES_SCHEMA.empty_table(), {1: ThetaSketch(numbers)}))
    with pytest.raises(UsageError, match="about 1,500 distinct values, too many for a bitmap") as caught:
        rookery.table(name, lake).add_index("bitmap", "id")
    assert "bloom" in (caught.value.hint or "")
    assert run(["index", "add", name, "bitmap", "id"]) == 2
    rookery.table(name, lake).add_index("bloom", "id")
    rookery.table(name, lake).add_index("bitmap", "Word")
    assert len(listed(lake, name)) == 2


def test_the_command_line(lake: Lake, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["index", "add", name, "bloom", "id", "--fpp", "0.01"]) == 0
    assert run(["index", "list", name]) == 0
    out, _ = capsys.readouterr()
    assert "bloom" in out
    assert "nothing to index yet" in out
    assert run(["index", "drop", name, "bloom", "id"]) == 0
    assert "has no indexes" in capsys.readouterr().out
    assert run(["index", "drop", name, "bloom", "id"]) == 2
    assert run(["index", "list", "lake.ix.nobody"]) == 2
