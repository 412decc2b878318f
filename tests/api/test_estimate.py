"""`estimate` through the API: reads no data file, is the same for text and expressions, refuses bad input."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo

from rookery.api.estimate import estimate
from rookery.api.table import TableHandle
from rookery.model import Certainty, TableName, UsageError
from rookery.model.cache import clear_caches
from tests.collect.plain import PlainTable
from tests.estimate.analysed import analyse, estimated, table_of


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    files = [pa.table({"k": list(range(start, start + 50)), "s": ["a", "b"] * 25}) for start in (0, 50)]
    made = table_of(tmp_path, *files)
    analyse(made, top_k=("s",), histogram=("k",))
    return made


def test_no_data_file_is_read(table: PlainTable, tmp_path: Path) -> None:
    before = {where: estimated(table, where).rows for where in ("k < 10 AND s = 'a'", "s <> 'b'")}
    for file in tmp_path.rglob("data/*.parquet"):
        file.unlink()
    clear_caches()
    assert {where: estimated(table, where).rows for where in before} == before


def test_an_expression_is_the_same_as_text(table: PlainTable) -> None:
    by_expression = estimate(table.load(), table.store, EqualTo("s", "a"))
    assert by_expression.rows == estimated(table, "s = 'a'").rows
    assert (by_expression.rows.value, by_expression.rows.kind) == (50, Certainty.EXACT)


def test_of_an_older_snapshot(table: PlainTable) -> None:
    first = table.load().current_snapshot_id
    table.append(pa.table({"k": [1, 2], "s": ["a", "c"]}))
    assert estimated(table).rows.value == 102
    assert estimate(table.load(), table.store, None, snapshot=first).rows.value == 100


def test_an_empty_table(tmp_path: Path) -> None:
    table = PlainTable(tmp_path, pa.schema([("k", pa.int64())]))
    report = estimated(table, "k = 1", "k")
    assert (report.rows.value, report.groups and report.groups.value, report.snapshot_id) == (0, 0, None)
    assert "exact" in str(report)


def test_columns_of_groups_are_a_list(table: PlainTable) -> None:
    with pytest.raises(UsageError, match="list of names"):
        TableHandle(None, TableName("plain", ("db",), "t")).estimate(group_by="k")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="named twice"):
        estimated(table, None, "k", "k")
