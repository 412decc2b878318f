"""Fields of structs: where a struct is null its fields are, whatever defaults, metrics and formats say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import rookery
from tests.differential.conftest import Check
from tests.differential.world import World
from tests.lakehouse import NewTable

FORMATS = ("parquet", "orc", "avro")

# -- defaults: rows written before a field was added, under structs that are there or not

DEFAULTS: dict[str, tuple[str, Any, str, str]] = {  # kind, default, its literal in SQL, another
    "text": ("string", "dflt", "'dflt'", "'other'"),
    "number": ("int", 7, "7", "9"),
    "amount": ("decimal(9, 2)", "1.50", "1.50BD", "2.25BD"),
    "day": ("date", "2024-02-29", "DATE '2024-02-29'", "DATE '2020-01-01'"),
    "moment": (
        "timestamptz",
        "2024-02-29T01:02:03.456789+00:00",
        "TIMESTAMP '2024-02-29 01:02:03.456789Z'",
        "TIMESTAMP '1999-01-01 00:00:00Z'",
    ),
    "ratio": ("double", 0.25, "0.25D", "-1D"),
    "flag": ("boolean", True, "true", "false"),
}
ROWS = """
    (1, NULL),
    (2, named_struct('a', 1, 't', NULL)),
    (3, named_struct('a', NULL, 't', named_struct('c', 'x'))),
    (4, named_struct('a', 2, 't', named_struct('c', NULL))),
    (5, NULL)
"""


def predicates(column: str, value: str, other: str) -> Iterator[str]:
    for op in ("=", "!=", "<", ">=", "<=>"):
        yield f"{column} {op} {value}"
        yield f"NOT ({column} {op} {value})"
    yield f"{column} IS NULL"
    yield f"{column} IS NOT NULL"
    yield f"{column} IN ({value}, {other})"
    yield f"{column} NOT IN ({other})"
    yield f"{column} = {other}"
    yield f"{column} IS NULL OR id = 3"
    yield f"{column} = {value} AND id < 4"


def with_defaults(world: World, new_table: NewTable, layout: str) -> str:
    """A table whose first file lacks the fields and a struct, and whose second lacks the fields."""
    name = new_table(
        "id BIGINT, s STRUCT<a: INT, t: STRUCT<c: STRING>>",
        format_version=3,
        **{"write.format.default": layout},
    )
    world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {ROWS}")
    world.spark.sql(f"ALTER TABLE {name} ADD COLUMN n STRUCT<p: INT>")
    world.spark.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id + 10, s, "
        f"if(id = 2, NULL, named_struct('p', CAST(id AS INT))) FROM VALUES {ROWS} AS v(id, s)"
    )
    for column, (kind, default, _, _) in DEFAULTS.items():
        for parent in ("s", "s.t", "n"):
            world.java.add_column_with_default(name, column, default, kind, parent)
    fields = ", ".join(f"'{column}', {other}" for column, (_, _, _, other) in DEFAULTS.items())
    nothing = ", ".join(f"'{column}', NULL" for column in DEFAULTS)
    world.spark.sql(f"""
        INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES
        (21, NULL, NULL),
        (22, named_struct('a', 1, 't', NULL, {fields}), named_struct('p', 1, {fields})),
        (23, named_struct('a', 1, 't', named_struct('c', 'y', {fields}), {nothing}),
            named_struct('p', 1, {nothing}))
    """)
    return name


COLUMNS = [
    (f"{parent}.{column}", value, other)
    for parent in ("s", "s.t", "n")
    for column, (_, _, value, other) in DEFAULTS.items()
]


def test_defaults_of_fields_in_structs(
    world: World, new_table: NewTable, check: Check, check_files: Check
) -> None:
    name = with_defaults(world, new_table, "parquet")
    asked = [each for column in COLUMNS for each in predicates(*column)]
    check_files(name, *asked)
    handle = rookery.table(name, world.lake)
    handle.add_index("bloom", "s.text")
    handle.add_index("bitmap", "s.t.number")
    rookery.analyze(world.spark, name, lake=world.lake)
    check_files(name, *asked)
    check(name, *asked[::13], by_spark=9)  # some of each form, and of each column
    counts_agree(world, name, [column for column, _, _ in COLUMNS])


def test_defaults_of_fields_in_structs_of_avro(world: World, new_table: NewTable, check_files: Check) -> None:
    """Which has no metrics; of ORC Iceberg reads no defaults."""
    name = with_defaults(world, new_table, "avro")
    asked = [each for column in COLUMNS for each in predicates(*column)]
    check_files(name, *asked)
    rookery.analyze(world.spark, name, lake=world.lake)
    check_files(name, *asked)
    counts_agree(world, name, [column for column, _, _ in COLUMNS])


def counts_agree(world: World, name: str, columns: list[str]) -> None:
    """Distinct values and nulls are those that Spark counts, or not known."""
    terms = ", ".join(f"count(DISTINCT {column}), count_if({column} IS NULL)" for column in columns)
    # Whole structs are read beside the fields: Iceberg takes one for there of which it reads no field.
    roots = ", ".join(
        f"max(to_json({root})) " for root in dict.fromkeys(each.split(".")[0] for each in columns)
    )
    truth = world.spark.sql(f"SELECT {terms}, {roots} FROM {name}").collect()[0]
    known = {each.name: each for each in rookery.table(name, world.lake).stats().columns}
    for place, column in enumerate(columns):
        distinct, nulls = truth[2 * place], truth[2 * place + 1]
        assert known[column].ndv == distinct, column
        assert known[column].nulls in (None, nulls), column


# -- metrics: what writers say of fields, at the top and in structs

LEAVES = {
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "t": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
    "day": "DATE",
    "text": "STRING",
    "m": "DECIMAL(20, 3)",
    "b": "BOOLEAN",
    "raw": "BINARY",
}
LONG = "x" * 1500
VALUES: dict[str, list[str]] = {  # by file, so that bounds matter
    "i": ["-2147483648", "-7", "2147483647"],
    "l": ["-9223372036854775807L", "-1L", "9223372036854775807L"],
    "f": ["FLOAT('NaN')", "FLOAT('-0.5')", "FLOAT('-Infinity')"],
    "d": ["DOUBLE('NaN')", "-1e300D", "-0.0D"],
    "t": [
        "TIMESTAMP '1969-12-31 23:59:59.999999Z'",
        "TIMESTAMP '2024-01-01 00:00:00.123456Z'",
        "TIMESTAMP '1500-06-01 12:00:00.000001Z'",
    ],
    "n": [
        "TIMESTAMP_NTZ '1969-12-31 23:59:59.999001'",
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.999999'",
        "TIMESTAMP_NTZ '0900-02-28 00:00:00.000001'",
    ],
    "day": ["DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '0100-03-01'"],
    "text": [f"'{LONG}a'", f"'{LONG}b'", "'\U0010ffff\U0010ffff\U0010ffff\U0010ffffé'"],
    "m": ["-99999999999999999.999BD", "-0.001BD", "0.010BD"],
    "b": ["true", "false", "true"],
    "raw": ["X'80FF'", "X''", "X'" + "FF" * 40 + "'"],
}


def rows(file: int) -> Iterator[str]:
    """Structs that are null, beside structs whose fields are never, sometimes or always null."""
    for row in range(20):
        values = {
            name: "NULL" if file == 3 or (file == 2 and row % 7 == 1) else VALUES[name][file % 3]
            for name in LEAVES
        }
        inner = ", ".join(f"'{name}', CAST({value} AS {LEAVES[name]})" for name, value in values.items())
        struct = "NULL" if row % 4 == 0 else f"named_struct({inner})"
        deep = "NULL" if row % 5 == 0 else f"named_struct('s', {struct})"
        flat = ", ".join(f"CAST({value} AS {LEAVES[name]})" for name, value in values.items())
        yield f"SELECT {file * 100 + row} AS id, {flat}, {struct}, {deep}"


def every_metric(columns: Iterable[str] = VALUES) -> Iterator[str]:
    for parent in ("", "s.", "deep.s."):
        for name in columns:
            column, values = f"{parent}`{name}`", VALUES[name]
            yield f"{column} IS NULL"
            yield f"{column} IS NOT NULL"
            for value in values:
                for op in ("=", "!=", "<", "<=", ">", ">="):
                    yield f"{column} {op} {value}"
            if name in ("f", "d"):
                yield f"isnan({column})"
                yield f"NOT isnan({column})"


@pytest.mark.parametrize("layout", FORMATS)
def test_metrics_prove_no_more_than_is_so(
    world: World, new_table: NewTable, check_files: Check, layout: str
) -> None:
    inner = ", ".join(f"`{name}`: {kind}" for name, kind in LEAVES.items())
    flat = ", ".join(f"`{name}` {kind}" for name, kind in LEAVES.items())
    name = new_table(
        f"id BIGINT, {flat}, s STRUCT<{inner}>, deep STRUCT<s: STRUCT<{inner}>>",
        **{"write.format.default": layout, "write.metadata.metrics.max-inferred-column-defaults": 200},
    )
    for file in range(4):
        listed = " UNION ALL ".join(rows(file))
        world.spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM ({listed})")
    check_files(name, *every_metric())
    rookery.analyze(world.spark, name, lake=world.lake, columns=["id", "s.i", "s.d"])
    check_files(name, *every_metric(["i", "d"]))
    known = rookery.table(name, world.lake).stats().columns
    terms = ", ".join(f"count_if({each.name} IS NULL)" for each in known)
    truth = world.spark.sql(f"SELECT {terms} FROM {name}").collect()[0]
    for each, nulls in zip(known, truth, strict=True):
        assert each.nulls in (None, nulls), each.name


@pytest.mark.parametrize("layout", ["parquet", "orc"])
def test_metrics_of_files_that_others_wrote(
    world: World, new_table: NewTable, check_files: Check, tmp_path: Path, layout: str
) -> None:
    """Taken over as they are, with the statistics of their own writers."""
    numbers = [float("nan"), -1.5, None, 2.0]
    table = pa.table(
        {
            "id": pa.array(range(20), pa.int64()),
            "s": pa.array(
                [None if n % 4 == 0 else {"x": n - 10, "d": numbers[n % 4], "y": n} for n in range(20)],
                pa.struct([("x", pa.int32()), ("d", pa.float64()), ("y", pa.int64())]),
            ),
        }
    )
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(2):
        part, path = table.slice(file * 10, 10), folder / f"part-{file}.{layout}"
        orc.write_table(part, path) if layout == "orc" else pq.write_table(part, path)
    name = new_table("id BIGINT, s STRUCT<x: INT, d: DOUBLE, y: BIGINT>")
    world.spark.sql(
        f"CALL lake.system.add_files(table => '{name.removeprefix('lake.')}', "
        f"source_table => '`{layout}`.`{folder}`')"
    )
    world.spark.catalog.refreshTable(name)
    asked = [f"s.{column} IS {word}" for column in "xdy" for word in ("NULL", "NOT NULL")]
    asked += [
        f"s.{column} {op} {value}" for column in "xdy" for op in ("=", "<", ">=") for value in (-1.5, 0, 9)
    ]
    check_files(name, *asked, "isnan(s.d)", "NOT isnan(s.d)", "s.y >= 1 AND s.x IS NULL")
