"""Each source of an estimate: what it is used for, and how close it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform

from rookery.api.estimate import EstimateReport
from rookery.model import Certainty
from rookery.model.cache import clear_caches
from tests.collect.plain import PlainTable
from tests.estimate.analysed import analyse, estimated, sources, table_of
from tests.prune.random_tables import RandomTable

ROWS, FILES = 4_000, 8
SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string()), ("city", pa.string()), ("v", pa.float64())])


def rows_of(file: int) -> pa.Table:
    """Ids grow with the files; words are skewed; a word is of one city; v is skewed too."""
    rng = np.random.default_rng(file)
    words = np.minimum(rng.zipf(1.4, ROWS), 900)
    return pa.table(
        {
            "id": np.arange(file * ROWS, (file + 1) * ROWS),
            "word": [f"w{number}" for number in words],
            "city": [f"c{number % 30}" for number in words],
            "v": rng.exponential(10, ROWS),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def files() -> list[pa.Table]:
    return [rows_of(file) for file in range(FILES)]


@pytest.fixture
def table(tmp_path: Path, files: list[pa.Table]) -> PlainTable:
    clear_caches()
    return table_of(tmp_path, *files)


def is_close(report: EstimateReport, true: int, factor: float) -> bool:
    value = report.rows.value
    return true / factor <= value <= true * factor and report.rows.low <= true <= report.rows.high


def test_no_predicate_is_exact_with_no_analysis(table: PlainTable) -> None:
    report = estimated(table)
    assert (report.rows.value, report.rows.kind) == (ROWS * FILES, Certainty.EXACT)
    assert report.notes == ("the table was never analyzed: only its metadata is used",)


def test_bounds_are_added_up_over_files(table: PlainTable) -> None:
    """No analysis is needed for a range on a column by which the files are clustered."""
    report = estimated(table, "id > 100 AND id <= 9000")
    assert is_close(report, 8900, 1.001)
    assert sources(report) == ["bounds"]
    assert (report.rows.low, report.rows.high) == (ROWS, 3 * ROWS)
    nothing = estimated(table, f"id >= {ROWS * FILES}")
    assert (nothing.rows.value, nothing.rows.kind) == (0, Certainty.EXACT)
    everything = estimated(table, "id < 4000 OR id >= 4000 AND id < 8000")
    assert everything.rows.kind is Certainty.EXACT


def test_few_values_of_a_file_are_spread_between_its_bounds(tmp_path: Path) -> None:
    """The bounds are values too, and where they lie differs from file to file."""
    ids = np.random.default_rng(3).permutation(640).reshape(64, 10)
    parts = [pa.table({"id": each, "word": ["w"] * 10, "city": ["c"] * 10, "v": [1.0] * 10}) for each in ids]
    report = estimated(table_of(tmp_path, *parts), "id < 64")
    assert sources(report) == ["bounds"]
    assert is_close(report, 64, 1.1)


def test_distinct_values(table: PlainTable) -> None:
    analyse(table)
    report = estimated(table, "id = 777")
    assert is_close(report, 1, 1.2)
    assert sources(report) == ["distinct values"]
    assert estimated(table, "id IN (1, 2, 3, 30000)").rows.value == pytest.approx(4, rel=0.2)


def test_frequent_values_are_exact_if_all_are_counted(table: PlainTable) -> None:
    analyse(table, top_k=("word",))
    for where in ("word = 'w1'", "word <> 'w2'", "word LIKE '%9'", "word > 'w5'", "word IN ('w1', 'no')"):
        report = estimated(table, where)
        assert report.rows.kind is Certainty.EXACT, where
        assert report.rows.value == table.count(where)
        assert "top-k" in sources(report)[0]


def test_values_of_a_sample_of_the_rows(table: PlainTable, files: list[pa.Table]) -> None:
    """One of eight row groups of each file: what is counted in them is not exact of the table."""
    with table.table.transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": str(ROWS // 8)})
    table.table.delete()
    for rows in files:
        table.append(rows)
    state = analyse(table, top_k=("city",), histogram=("v",), sample=1)
    assert state.header.rows is not None
    assert state.header.rows.rows_seen == FILES * ROWS // 8
    for where in ("city = 'c1'", "city <> 'c1'", "city IN ('c2', 'c3')", "city LIKE '%1'", "v < 3", "v > 20"):
        report = estimated(table, where)
        assert report.rows.kind is not Certainty.EXACT, where
        assert is_close(report, table.count(where), 1.15), (where, report.rows)
        assert sources(report) in (["top-k"], ["histogram"])
        assert report.rows.low < report.rows.high
    rare = "word = 'w777'"
    analyse(table, top_k=("word",), sample=1)
    report = estimated(table, rare)
    assert report.rows.low <= table.count(rare) <= report.rows.high


def test_frequent_values_of_more_values_than_are_kept(tmp_path: Path) -> None:
    """The bounds of a frequent value are proved; so is the most that another value can have."""
    rng = np.random.default_rng(1)
    numbers = np.where(rng.random(60_000) < 0.3, 7, rng.integers(0, 20_000, 60_000))
    table = table_of(tmp_path, pa.table({"n": numbers}))
    analyse(table, top_k=("n",))
    frequent, other = estimated(table, "n = 7"), estimated(table, "n = 123")
    assert is_close(frequent, table.count("n = 7"), 1.05)
    assert frequent.proven
    assert frequent.rows.low > 15_000
    assert is_close(other, table.count("n = 123"), 5)
    assert other.rows.high < 200


def test_histogram(table: PlainTable) -> None:
    analyse(table, histogram=("v",))
    for where in ("v < 3", "v BETWEEN 5 AND 12", "v > 40"):
        report = estimated(table, where)
        assert is_close(report, table.count(where), 1.15), (where, report.rows)
        assert sources(report) == ["histogram"]
        assert report.rows.high - report.rows.low < 0.1 * ROWS * FILES
        assert not report.proven


def test_null_counts_are_exact(tmp_path: Path) -> None:
    table = table_of(
        tmp_path, pa.table({"n": [1, None, None, 4]}), pa.table({"n": pa.array([5], pa.int64())})
    )
    for where, true in (("n IS NULL", 2), ("n IS NOT NULL", 3), ("n IS NULL OR n = 5", 3)):
        report = estimated(table, where)
        assert (report.rows.value, report.rows.kind) == (true, Certainty.EXACT), where


def test_bitmap_counts_are_exact_also_of_several_columns(table: PlainTable) -> None:
    for column in ("word", "city"):
        table.add_index("bitmap", column)
    analyse(table)
    for where in ("word = 'w1'", "word = 'w1' AND city = 'c1'", "word = 'w3' OR city <> 'c1'"):
        report = estimated(table, where)
        assert (report.rows.value, report.rows.kind) == (table.count(where), Certainty.EXACT), where
        assert sources(report) == ["bitmap index"]


def test_a_bitmap_and_another_condition(table: PlainTable) -> None:
    table.add_index("bitmap", "city")
    analyse(table, histogram=("v",))
    where = "city = 'c2' AND v < 5"
    report = estimated(table, where)
    assert is_close(report, table.count(where), 1.2)
    assert sorted(sources(report)) == ["bitmap index", "histogram"]
    assert report.rows.high <= table.count("city = 'c2'")


def test_a_column_set_shows_that_a_column_determines_another(table: PlainTable) -> None:
    independent, where = {"top_k": ("word", "city")}, "word = 'w31' AND city = 'c1'"
    true = table.count(where)
    analyse(table, **independent)
    assert estimated(table, where).rows.value < true / 2
    analyse(table, **independent, column_sets=(("word", "city"),))
    report = estimated(table, where)
    assert is_close(report, true, 1.1)
    assert sources(report) == ["top-k", "top-k", "column set"]
    assert estimated(table, "word = 'w31' AND city = 'c2'").rows.value == 0, "they never occur together"
    lists = "word IN ('w31', 'w2') AND city = 'c1'"
    assert is_close(estimated(table, lists), table.count(lists), 1.3)


def test_partition_values_are_exact(tmp_path: Path) -> None:
    table = RandomTable(tmp_path, ("string", "long"))
    table.partition_by(c0=IdentityTransform())
    names = [f"a name that is longer than its bounds in the manifest {n}" for n in range(3)]
    table.append_rows([{"c0": names[n % 3], "c1": n} for n in range(30)])
    for where, true in (
        (f"c0 = '{names[0]}'", 10),
        (f"c0 IN ('{names[0]}', '{names[2]}')", 20),
        (f"c0 <> '{names[1]}'", 20),
        (f"c0 > '{names[0]}'", 20),
        (f"c0 LIKE '%{names[0][-10:]}'", 10),
        (f"NOT c0 LIKE '%{names[0][-10:]}'", 20),
    ):
        report = estimated(table, where)
        assert (report.rows.value, report.rows.kind) == (true, Certainty.EXACT), where
    assert sources(estimated(table, f"c0 = '{names[0]}'")) == ["partitions"]
    groups = estimated(table, None, "c0")
    assert (groups.groups and groups.groups.value, groups.groups_source) == (3, "partitions")
    assert groups.groups is not None
    assert groups.groups.kind is Certainty.EXACT


def test_what_is_not_understood_has_a_stated_default(table: PlainTable) -> None:
    report = estimated(table, "length(word) = 3 AND id < 4000")
    assert (report.rows.low, report.rows.high) == (0, ROWS)
    assert report.rows.value == pytest.approx(ROWS / 4)
    assert sources(report) == ["default", "bounds"]
    assert any(note.startswith("not understood") and "25%" in note for note in report.notes)


def test_new_files_are_estimated_by_their_bounds_and_the_known_distribution(table: PlainTable) -> None:
    analyse(table, histogram=("v",), top_k=("word",))
    table.append(rows_of(FILES))
    for where in ("v < 3", "word = 'w1'", f"id >= {ROWS * FILES + 1000}"):
        report = estimated(table, where)
        assert is_close(report, table.count(where), 1.15), (where, report.rows)
        assert report.rows.kind is Certainty.SKETCHED
        assert report.notes == ("1 of 9 files are newer than the statistics",)


def test_damaged_sketches_are_passed_over(table: PlainTable) -> None:
    analyse(table, histogram=("v",))
    (state,) = Path(table.store.location).glob("state-*.puffin")
    data = bytearray(state.read_bytes())
    data[40:60] = bytes(20)
    state.write_bytes(bytes(data))
    clear_caches()
    report = estimated(table, "v < 3 AND id < 4000")
    assert report.rows.low <= table.count("v < 3 AND id < 4000") <= report.rows.high


@pytest.mark.parametrize(
    ("where", "columns", "factor"),
    [
        (None, ("word",), 1.0),
        (None, ("word", "city"), 1.0),
        (None, ("id",), 1.1),
        (None, ("city", "id"), 1.1),
        ("word IN ('w1', 'w2', 'w3')", ("word",), 1.1),
        ("v < 1", ("word",), 1.5),
        ("id < 500", ("id",), 1.1),
    ],
)
def test_groups(table: PlainTable, where: str | None, columns: tuple[str, ...], factor: float) -> None:
    analyse(table, histogram=("v",), top_k=("word",), column_sets=(("word", "city"),))
    rows: list[dict[str, Any]] = table.read(where or "id >= 0")
    true = len({tuple(row[name] for name in columns) for row in rows})
    report = estimated(table, where, *columns)
    assert report.groups is not None
    assert true / factor <= report.groups.value <= true * factor
    assert report.groups.low <= true <= report.groups.high
    if factor == 1:
        assert report.groups.kind is Certainty.EXACT


GREATEST = float(np.finfo(float).max)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("choice", [{}, {"histogram": ("x",)}, {"top_k": ("x",)}])
@pytest.mark.parametrize("number", [0.0, 1.0, 5e-324, 1e-300, 1e300, GREATEST])
def test_doubles_that_are_too_far_apart(tmp_path: Path, choice: dict[str, Any], number: float) -> None:
    schema = pa.schema([("x", pa.float64())])
    low, high = [-GREATEST, -1.0, 5e-324], [0.0, 1.0, 1.5, GREATEST]
    values = [[*low, *high], [*high, *(float(each) for each in range(300))], [0.0, 5e-324], [-1.0, 1e-300]]
    table = table_of(tmp_path, *(pa.table({"x": each * 9}, schema=schema) for each in values))
    analyse(table, **choice)
    for where in ("x > {}", "x <= {}", "x = {}", "x < -{}", "x BETWEEN -{} AND {}", "x IN ({}, 1.5, -1)"):
        text = where.replace("{}", f"{number!r}D")
        report = estimated(table, text)
        assert report.rows.low <= report.rows.value <= report.rows.high, text
        if report.proven:
            assert report.rows.low <= table.count(text) <= report.rows.high, text


@pytest.mark.parametrize("kind", ["float", "double"])
def test_both_zeros_are_one_group(tmp_path: Path, kind: str) -> None:
    """They may be two partitions, and are one value to GROUP BY."""
    table = RandomTable(tmp_path, (kind, "long"))
    table.partition_by(c0=IdentityTransform())
    for zero in (0.0, -0.0, 7.0):
        table.append_rows([{"c0": zero, "c1": 1}])
    groups = estimated(table, None, "c0").groups
    assert groups is not None
    assert (groups.value, groups.kind) == (2, Certainty.EXACT)
