"""Parquet files read page by page, against pyarrow's full decode of the same files."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.collect.physical import NeedsEngineError
from rookery.collect.read import ARROW, PAGES, read_parquet
from rookery.io import open_source
from rookery.model import Field
from rookery.parquet import read_footer
from rookery.sketch import MAX_THETA
from tests.collect.files import agrees, decoded, read, write

ROWS = 5_000
CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]
rng = np.random.default_rng(7)


def some_nulls(values: Any, kind: pa.DataType) -> pa.Array:
    every_third = np.arange(len(values)) % 3 == 0
    return pa.array(values, mask=every_third).cast(kind)


def numbers(distinct: int = 10**6) -> np.ndarray:
    return rng.integers(0, distinct, ROWS)


def sample(distinct: int = 10**6) -> pa.Table:
    """Every physical type, with nulls and without."""
    n = numbers(distinct)
    texts = [f"text {value}" for value in n]
    return pa.table(
        {
            "i": pa.array(n, pa.int32()),
            "l": some_nulls(n * 10**6, pa.int64()),
            "f": some_nulls(n / 7, pa.float32()),
            "d": pa.array(n / 7, pa.float64()),
            "s": some_nulls(texts, pa.string()),
            "b": pa.array([text.encode() for text in texts], pa.binary()),
            "x": some_nulls([int(value).to_bytes(16, "big") for value in n], pa.binary(16)),
            "c": pa.array([Decimal(int(value)) for value in n], pa.decimal128(20, 0)),
            "t": some_nulls(n, pa.timestamp("us", "UTC")),
        }
    )


FIELDS = [
    Field(number, name, kind)
    for number, (name, kind) in enumerate(
        [
            ("i", "int"),
            ("l", "long"),
            ("f", "float"),
            ("d", "double"),
            ("s", "string"),
            ("b", "binary"),
            ("x", "uuid"),
            ("c", "decimal(20, 0)"),
            ("t", "timestamptz"),
        ],
        1,
    )
]


# -- encodings, codecs, pages


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_codecs_and_pages(tmp_path: Path, codec: str, page: str, dictionary: bool) -> None:
    path = write(
        tmp_path / "a.parquet",
        sample(1000),
        compression=codec,
        data_page_version=page,
        use_dictionary=dictionary,
        row_group_size=2_000,
        data_page_size=4_000,
    )
    reading = agrees(path, *FIELDS)
    assert reading.chunks == {PAGES: 3 * len(FIELDS)}
    assert reading.values == ROWS * len(FIELDS)


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("limit", [1, 3_000, 20_000])
def test_dictionaries_that_overflow(tmp_path: Path, page: str, limit: int) -> None:
    """The first pages refer to a dictionary, the later ones are PLAIN: both are needed."""
    path = write(
        tmp_path / "a.parquet",
        sample(),
        data_page_version=page,
        dictionary_pagesize_limit=limit,
        write_batch_size=100,
        data_page_size=500,
        compression="zstd",
    )
    with open_source(path) as source:
        mixed = [c for c in read_footer(source).row_groups[0].chunks if c.plain_pages and c.dictionary_pages]
    assert mixed or limit != 3_000
    assert agrees(path, *FIELDS).chunks == {PAGES: len(FIELDS)}


@pytest.mark.parametrize("size", [1, 64])
def test_tiny_pages(tmp_path: Path, size: int) -> None:
    path = write(
        tmp_path / "a.parquet", sample(), data_page_size=size, write_batch_size=3, use_dictionary=False
    )
    assert agrees(path, *FIELDS).chunks == {PAGES: len(FIELDS)}


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
def test_format_versions(tmp_path: Path, version: str) -> None:
    agrees(write(tmp_path / "a.parquet", sample(), version=version), *FIELDS)


def test_many_row_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample(50), row_group_size=100)
    assert agrees(path, *FIELDS).chunks == {PAGES: 50 * len(FIELDS)}


@pytest.mark.parametrize(
    "column, encoding",
    [
        ("i", "DELTA_BINARY_PACKED"),
        ("l", "DELTA_BINARY_PACKED"),
        ("t", "DELTA_BINARY_PACKED"),
        ("s", "DELTA_BYTE_ARRAY"),
        ("s", "DELTA_LENGTH_BYTE_ARRAY"),
        ("x", "DELTA_BYTE_ARRAY"),
        ("f", "BYTE_STREAM_SPLIT"),
        ("d", "BYTE_STREAM_SPLIT"),
        ("c", "BYTE_STREAM_SPLIT"),
    ],
)
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_other_encodings_are_left_to_arrow(tmp_path: Path, column: str, encoding: str, page: str) -> None:
    path = write(
        tmp_path / "a.parquet",
        sample(),
        use_dictionary=False,
        column_encoding={column: encoding},
        data_page_version=page,
        row_group_size=3_000,
    )
    assert agrees(path, *FIELDS).chunks == {PAGES: 2 * (len(FIELDS) - 1), ARROW: 2}


def test_one_read_of_the_footer_and_one_a_chunk(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample(), use_dictionary=False)
    reading = read(path, FIELDS[:2])
    assert reading.reads == 3


# -- nulls and nesting


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("nulls", ["none", "some", "all", "no rows"])
def test_nulls(tmp_path: Path, nulls: str, page: str, dictionary: bool) -> None:
    values = {"none": ["x", "y"] * 50, "some": ["x", None, ""] * 50, "all": [None] * 100, "no rows": []}[
        nulls
    ]
    table = pa.table(
        {
            "s": pa.array(values, pa.string()),
            "l": pa.array([None if v is None else len(v) for v in values], pa.int64()),
        }
    )
    path = write(tmp_path / "a.parquet", table, data_page_version=page, use_dictionary=dictionary)
    reading = agrees(path, Field(1, "s", "string"), Field(2, "l", "long"))
    assert len(reading.sketches[1].hashes) == {"none": 2, "some": 1}.get(nulls, 0)


def test_required_columns(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("l", pa.int64(), nullable=False)])
    table = pa.table([pa.array([1, 2, 3])], schema=schema)
    reading = agrees(write(tmp_path / "a.parquet", table, use_dictionary=False), Field(1, "l", "long"))
    assert len(reading.sketches[1].hashes) == 3


def nested() -> tuple[pa.Table, list[Field]]:
    """Structs, lists and maps inside each other, with nulls and empty ones at every level."""
    n = 600
    numbers_by_text = pa.map_(pa.string(), pa.int64())
    lists_of_lists = pa.list_(pa.list_(pa.int64()))
    table = pa.table(
        {
            "s": pa.array([None if i % 5 == 0 else {"a": i, "b": {"c": f"c{i % 90}"}} for i in range(n)]),
            "l": pa.array([None if i % 7 == 0 else [i, None, i + 1][: i % 4] for i in range(n)]),
            "m": pa.array(
                [None if i % 9 == 0 else [(f"k{i}", i % 33)][: i % 3] for i in range(n)], numbers_by_text
            ),
            "ls": pa.array(
                [[{"x": i % 40, "y": None if i % 2 else f"y{i}"}, None][: i % 3] for i in range(n)],
                pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])),
            ),
            "ll": pa.array([[[i], [], None, [i, -i]][: i % 5] for i in range(n)], lists_of_lists),
            "mm": pa.array(
                [[(i, [(f"in{i}", i / 3)])][: i % 2] for i in range(n)],
                pa.map_(pa.int64(), pa.map_(pa.string(), pa.float64())),
            ),
            "ms": pa.array(
                [[(i, {"p": i % 11, "q": [f"q{i}"]})][: i % 3] for i in range(n)],
                pa.map_(pa.int64(), pa.struct([("p", pa.int64()), ("q", pa.list_(pa.string()))])),
            ),
        }
    )
    leaves = [
        (2, "s.a", "long"), (4, "s.b.c", "string"), (6, "l.element", "long"), (8, "m.key", "string"),
        (9, "m.value", "long"), (12, "ls.element.x", "int"), (13, "ls.element.y", "string"),
        (16, "ll.element.element", "long"), (18, "mm.key", "long"), (20, "mm.value.key", "string"),
        (21, "mm.value.value", "double"), (23, "ms.key", "long"), (25, "ms.value.p", "long"),
        (27, "ms.value.q.element", "string"),
    ]  # fmt: skip
    return table, [Field(*leaf) for leaf in leaves]


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_nested_leaves(tmp_path: Path, page: str, dictionary: bool) -> None:
    table, fields = nested()
    path = write(
        tmp_path / "a.parquet", table, data_page_version=page, use_dictionary=dictionary, row_group_size=250
    )
    reading = agrees(path, *fields)
    assert reading.chunks == {PAGES: 3 * len(fields)}
    assert all(len(sketch.hashes) > 10 for sketch in reading.sketches.values())


def test_nested_leaves_by_arrow(tmp_path: Path) -> None:
    """Deltas for numbers and texts, so that pages will not do for any of them but the double."""
    table, fields = nested()
    with pa.BufferOutputStream() as sink:
        pq.write_table(table, sink)
        names = [column.path for column in _columns(pq.ParquetFile(sink.getvalue()))]
    kinds = {"string": "DELTA_BYTE_ARRAY", "long": "DELTA_BINARY_PACKED", "int": "DELTA_BINARY_PACKED"}
    encodings = {
        name.replace(".item", ".element"): kinds.get(field.type, "BYTE_STREAM_SPLIT")
        for name, field in zip(names, fields, strict=True)
    }
    path = write(tmp_path / "a.parquet", table, use_dictionary=False, column_encoding=encodings)
    assert agrees(path, *fields).chunks == {ARROW: len(fields)}


def _columns(file: pq.ParquetFile) -> list[Any]:
    return [file.metadata.schema.column(number) for number in range(file.metadata.num_columns)]


def test_a_column_and_another_whose_name_begins_with_it(tmp_path: Path) -> None:
    table = pa.table(
        {"a": pa.array(range(100)), "a.b": pa.array(range(1000, 1100)), "a.b.c": pa.array(["x"] * 100)}
    )
    deltas = dict.fromkeys(["a", "a.b"], "DELTA_BINARY_PACKED")
    path = write(tmp_path / "a.parquet", table, use_dictionary=False, column_encoding=deltas)
    fields = [Field(1, "a", "long"), Field(2, "a_x2Eb", "long"), Field(3, "a_x2Eb_x2Ec", "string")]
    reading = read(path, fields)
    assert reading.chunks == {ARROW: 2, PAGES: 1}
    assert [len(reading.sketches[field.id].hashes) for field in fields] == [100, 100, 1]


# -- types that pages do not serve, or serve in several ways


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_booleans(tmp_path: Path, dictionary: bool) -> None:
    for values, distinct in (([True, False, None] * 40, 2), ([True] * 99, 1), ([None] * 9, 0)):
        path = write(
            tmp_path / "a.parquet", pa.table({"b": pa.array(values, pa.bool_())}), use_dictionary=dictionary
        )
        reading = agrees(path, Field(1, "b", "boolean"))
        assert len(reading.sketches[1].hashes) == distinct
        assert reading.chunks == {ARROW: 1}


MOMENTS = [0, 1, -1, 10**15 + 123_456, -(10**14) - 999_001]


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize(
    "unit, kind, way",
    [
        ("us", "timestamp", PAGES),
        ("ms", "timestamp", ARROW),
        ("ns", "timestamp", ARROW),
        ("us", "timestamptz", PAGES),
        ("ns", "timestamp_ns", PAGES),
        ("us", "timestamp_ns", ARROW),
        ("ns", "timestamptz_ns", PAGES),
    ],
)
def test_timestamps(tmp_path: Path, unit: str, kind: str, way: str, dictionary: bool) -> None:
    zone = "UTC" if "tz" in kind else None
    scale = {"ms": 1000, "us": 1, "ns": 1}[unit]
    array = pa.array([moment // scale for moment in MOMENTS] + [None], pa.timestamp(unit, zone))
    path = write(tmp_path / "a.parquet", pa.table({"t": array}), use_dictionary=dictionary)
    reading = agrees(path, Field(1, "t", kind))
    assert reading.chunks == {way: 1}
    assert len(reading.sketches[1].hashes) >= 3


def test_int96(tmp_path: Path) -> None:
    """What Hive and old Sparks wrote; a table may have adopted it."""
    array = pa.array([*MOMENTS, None], pa.timestamp("us"))
    path = write(tmp_path / "a.parquet", pa.table({"t": array}), use_deprecated_int96_timestamps=True)
    with open_source(path) as source:
        assert read_footer(source).leaves[0].physical.name == "INT96"
    assert agrees(path, Field(1, "t", "timestamp")).chunks == {ARROW: 1}
    reading = read(path, [Field(1, "t", "timestamp")])
    plain = write(tmp_path / "b.parquet", pa.table({"t": array}))
    assert reading.sketches == read(plain, [Field(1, "t", "timestamp")]).sketches


@pytest.mark.parametrize(
    "unit, kind, way", [("us", "time64", PAGES), ("ms", "time32", ARROW), ("ns", "time64", ARROW)]
)
def test_times(tmp_path: Path, unit: str, kind: str, way: str) -> None:
    array = pa.array([0, 1000, 86_399_000], getattr(pa, kind)(unit))
    path = write(tmp_path / "a.parquet", pa.table({"t": array}), use_dictionary=False)
    assert agrees(path, Field(1, "t", "time")).chunks == {way: 1}


def test_dates(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"d": pa.array([0, -1, 20_000, None], pa.date32())}))
    assert len(agrees(path, Field(1, "d", "date")).sketches[1].hashes) == 3


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("as_integer", [True, False], ids=["integers", "fixed"])
@pytest.mark.parametrize("precision", [1, 2, 4, 9, 10, 18, 19, 28, 38])
def test_decimals(tmp_path: Path, precision: int, as_integer: bool, dictionary: bool) -> None:
    top = 10**precision - 1
    values = [Decimal(value) for value in (0, 1, -1, top, -top, top // 2, top // 129, -(top // 300))] + [None]
    table = pa.table({"c": pa.array(values, pa.decimal128(precision, 0))})
    path = write(
        tmp_path / "a.parquet", table, store_decimal_as_integer=as_integer, use_dictionary=dictionary
    )
    with open_source(path) as source:
        physical = read_footer(source).leaves[0].physical.name
    small = "INT32" if precision <= 9 else "INT64"
    assert physical == (small if as_integer and precision <= 18 else "FIXED_LEN_BYTE_ARRAY")
    assert agrees(path, Field(1, "c", f"decimal({precision}, 0)")).chunks == {PAGES: 1}


@pytest.mark.parametrize(
    "stored, kind, way",
    [
        (pa.int32(), "long", PAGES),
        (pa.float32(), "double", ARROW),
        (pa.decimal128(9, 2), "decimal(18, 2)", PAGES),
    ],
)
def test_promoted_columns(tmp_path: Path, stored: pa.DataType, kind: str, way: str) -> None:
    """Old files hold the old type; the values count as those of the new one."""
    now = {"long": pa.int64(), "double": pa.float64()}.get(kind, pa.decimal128(18, 2))
    values = pa.array([0.0, 1.0, -1.0, 77.0, -300.0])
    old = write(tmp_path / "old.parquet", pa.table({"v": values.cast(stored)}), use_dictionary=False)
    new = write(tmp_path / "new.parquet", pa.table({"v": values.cast(now)}), use_dictionary=False)
    field = Field(1, "v", kind)
    reading = agrees(old, field)
    assert reading.chunks == {way: 1}
    assert reading.sketches == read(new, [field]).sketches


# -- what is not there


def test_no_rows_and_no_row_groups(tmp_path: Path) -> None:
    empty = sample().slice(0, 0)
    one = write(tmp_path / "one.parquet", empty)
    schema = pq.read_schema(one)
    pq.ParquetWriter(tmp_path / "none.parquet", schema).close()
    assert pq.ParquetFile(tmp_path / "none.parquet").metadata.num_row_groups == 0
    for path in (one, str(tmp_path / "none.parquet")):
        reading = agrees(path, *FIELDS)
        assert all(sketch.is_empty for sketch in reading.sketches.values())
        assert reading.values == 0


def test_a_column_that_the_file_lacks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample())
    reading = read(path, [Field(1, "i", "int"), Field(99, "new", "int")])
    assert reading.sketches[99].is_empty
    assert len(reading.sketches[1].hashes)


def test_columns_go_by_id_and_not_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"old": pa.array([1, 2, 3]), "other": pa.array([1, 1, 1])}))
    reading = read(path, [Field(1, "other", "long"), Field(2, "old", "long")])
    assert [len(reading.sketches[number].hashes) for number in (1, 2)] == [3, 1]


def test_without_field_ids_the_engine_must_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(NeedsEngineError):
        read(str(tmp_path / "a.parquet"), [Field(1, "a", "long")])


# -- θ, and the price


def test_a_theta_that_starts_low(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample())
    whole, low = read(path, FIELDS), read(path, FIELDS, theta=MAX_THETA // 10)
    for number, sketch in low.sketches.items():
        assert sketch.theta == MAX_THETA // 10
        assert np.array_equal(sketch.hashes, whole.sketches[number].hashes[: len(sketch.hashes)])
        assert 0 < len(sketch.hashes) < len(whole.sketches[number].hashes)


@pytest.mark.parametrize("column", ["i", "s", "c"])
def test_a_dictionary_is_all_that_is_read(tmp_path: Path, column: str) -> None:
    n = rng.integers(0, 100, 400_000)
    kinds = {
        "i": (pa.array(n, pa.int32()), "int"),
        "s": (pa.array([f"text {value}" for value in n]), "string"),
        "c": (pa.array(n).cast(pa.decimal128(20, 0)), "decimal(20, 0)"),
    }
    array, kind = kinds[column]
    path = write(tmp_path / "a.parquet", pa.table({"v": array}), compression="none", row_group_size=200_000)
    metadata = pq.read_metadata(path)
    size = sum(metadata.row_group(g).column(0).total_compressed_size for g in range(metadata.num_row_groups))
    footer = min(Path(path).stat().st_size, 64 << 10)  # the tail that is read for the footer's sake
    reading = agrees(path, Field(1, "v", kind))
    assert reading.bytes_read - footer < size / 50
    assert reading.reads == 3


def test_unwanted_columns_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample(), use_dictionary=False, compression="none")
    column = pq.read_metadata(path).row_group(0).column(0)
    footer = min(Path(path).stat().st_size, 64 << 10)
    reading = read(path, FIELDS[:1])
    assert reading.bytes_read == footer + column.total_compressed_size


def test_a_long_footer_takes_a_second_read(tmp_path: Path) -> None:
    table = pa.table({f"column {n}": pa.array([n]) for n in range(700)})
    path = write(tmp_path / "a.parquet", table)
    reading = read(path, [])
    assert reading.reads == 2
    assert len(read(path, [Field(700, "column 699", "long")]).sketches[700].hashes) == 1


def test_every_combination_of_levels_and_pages(tmp_path: Path) -> None:
    """Required or optional, in a list or not: the levels before the values have different lengths."""
    values = list(range(50))
    for required, repeated, page in itertools.product((True, False), (True, False), ("1.0", "2.0")):
        kind = pa.list_(pa.field("element", pa.int64(), nullable=not required)) if repeated else pa.int64()
        schema = pa.schema([pa.field("v", kind, nullable=not required)])
        table = pa.table([pa.array([[v] for v in values] if repeated else values, kind)], schema=schema)
        path = write(tmp_path / "a.parquet", table, data_page_version=page, use_dictionary=False)
        field = Field(2, "v.element", "long") if repeated else Field(1, "v", "long")
        assert len(agrees(path, field).sketches[field.id].hashes) == 50


def test_the_size_may_come_from_the_manifest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", sample())
    reading = read_parquet(path, Path(path).stat().st_size, FIELDS[:1], {1: MAX_THETA}, {})
    assert reading.sketches[1] == decoded(path, FIELDS[0])
