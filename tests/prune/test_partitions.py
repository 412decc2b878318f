"""Predicates seen through partition transforms: the partition of a matching row is never ruled out."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from rookery.model import Compare, Field, In, Leaf, Op, Value
from rookery.model.type_names import base_type
from rookery.prune.bounds import UNKNOWN, Bounds
from rookery.prune.partitions import (
    PartitionColumn,
    in_form,
    might_match_partitions,
    partition_columns,
    test_partitions,
    transformed,
)
from rookery.tables.iceberg.foreign_types import ForeignType
from rookery.tables.iceberg.transforms import IcebergTransform
from rookery.tables.partitioning import PartitionField, TransformKind
from rookery.values.canonical import from_bytes, is_float
from tests.prune import typed
from tests.where.naive import matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

test_partitions.__test__ = False  # type: ignore[attr-defined]  # it is what is tested

TYPES: dict[str, PrimitiveType] = {
    "boolean": PrimitiveType.model_validate("boolean"),
    "int": IntegerType(),
    "long": LongType(),
    "float": PrimitiveType.model_validate("float"),
    "double": PrimitiveType.model_validate("double"),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "timestamp_ns": PrimitiveType.model_validate("timestamp_ns"),
    "timestamptz_ns": PrimitiveType.model_validate("timestamptz_ns"),
    "string": StringType(),
    "binary": BinaryType(),
    "fixed[4]": FixedType(4),
    "uuid": UUIDType(),
    "decimal(4, 2)": DecimalType(4, 2),
    "decimal(9, 0)": DecimalType(9, 0),
    "decimal(18, 6)": DecimalType(18, 6),
    "decimal(38, 10)": DecimalType(38, 10),
}
TRANSFORMS: tuple[Transform[Any, Any], ...] = (
    IdentityTransform(),
    BucketTransform(3),
    BucketTransform(1000),
    TruncateTransform(1),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
)
PAIRS = [
    pytest.param(kind, transform, id=f"{transform}-{kind}")
    for kind in typed.KINDS
    for transform in TRANSFORMS
    if transform.can_transform(TYPES[kind])
]
ROUNDS = 25


def column_of(kind: str, transform: Transform[Any, Any]) -> PartitionColumn:
    (column,) = partition_columns([PartitionField(1000, 1, "p", IcebergTransform(transform))], {1: kind})
    return column


def shown(value: Value | None) -> Any:
    """A partition's value as manifests have it in JSON."""
    return value.hex() if isinstance(value, bytes) else value


def seen(value: Value | None, column: PartitionColumn) -> Value | None:
    """The partition's value as Java has it, whose truncation of the least numbers wraps around."""
    if value is None:
        return None
    found = transformed(value, column)
    bits = {"int": 32, "long": 64}.get(column.field.type)
    if bits and column.transform.kind is TransformKind.TRUNCATE:
        return (int(found) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    return found


def fits(value: Value, column: PartitionColumn) -> bool:
    """Whether truncation stays in the type."""
    found = transformed(value, column)
    return seen(value, column) == found and (
        base_type(column.field.type) != "decimal" or abs(int(found)) < 10**38
    )


@pytest.mark.parametrize(("kind", "transform"), PAIRS)
def test_the_partition_of_a_matching_row_is_kept(kind: str, transform: Transform[Any, Any]) -> None:
    rng = random.Random(f"{transform} {kind}")
    column, field = column_of(kind, transform), Field(1, "c", kind)
    ruled_out = 0
    for _ in range(ROUNDS):
        made = typed.pool(rng, kind, 12)
        if base_type(kind) == "decimal":
            made = [value for value in made if fits(value, column)]
        values: list[Value | None] = [*made, None]
        parts = [seen(value, column) for value in values]
        partitions = [json.dumps([shown(part)]) for part in parts]
        leaves = [typed.leaf(rng, field, [v for v in values if v is not None]) for _ in range(10)]
        for leaf in leaves:
            kept = might_match_partitions(leaf, [column], partitions).tolist()
            for value, part, might in zip(values, parts, kept, strict=True):
                assert might or not matches(leaf, {"c": value}), (leaf, value, part)
            ruled_out += kept.count(False)
            _manifest(rng, leaf, column, values, parts)
    assert ruled_out > 0


def _manifest(
    rng: random.Random, leaf: Any, column: PartitionColumn, values: list[Any], parts: list[Any]
) -> None:
    """The same of manifests, of which only the least and the greatest partition are known."""
    if not isinstance(leaf, Leaf):
        return
    kind = column.field.type
    mine = rng.sample(range(len(values)), 3)
    numbers = [parts[place] for place in mine if parts[place] is not None and parts[place] == parts[place]]
    ends = [min(numbers, default=None), max(numbers, default=None)]
    formed = [typed.arrow(kind, [end]) for end in ends]
    nulls = UNKNOWN if any(parts[place] is None for place in mine) else 0
    nans = UNKNOWN if is_float(kind) else 0
    counts = (np.array([number], np.int64) for number in (UNKNOWN, nulls, nans))
    found = test_partitions(leaf, [column], lambda _: Bounds(*formed, *counts), 1)
    there = [values[place] for place in mine if matches(leaf, {"c": values[place]})]
    assert found[0] or not there, (leaf, there, ends)


@pytest.mark.parametrize(("kind", "transform"), PAIRS)
def test_another_partition_is_ruled_out(kind: str, transform: Transform[Any, Any]) -> None:
    rng = random.Random(f"other {transform} {kind}")
    column, field = column_of(kind, transform), Field(1, "c", kind)
    values = [value for value in typed.pool(rng, kind, 40) if value == value and fits(value, column)]
    for wanted in values[:15]:
        mine = transformed(wanted, column)
        slack = (mine, mine + 1) if isinstance(transform, TimeTransform) and int(mine) < 0 else (mine,)  # type: ignore[operator]
        others = [transformed(value, column) for value in values]
        others = [other for other in others if other not in slack]
        partitions = [json.dumps([shown(other)]) for other in (*others, None)]
        for leaf in (Compare(field, Op.EQ, wanted), In(field, (wanted,))):
            assert not might_match_partitions(leaf, [column], partitions).any(), (leaf, others)


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "timestamp_ns"])
def test_times_that_old_writers_rounded_towards_1970(kind: str) -> None:
    rng = random.Random(f"old {kind}")
    field = Field(1, "c", kind)
    for transform in (YearTransform(), MonthTransform(), DayTransform(), HourTransform()):
        if not transform.can_transform(TYPES[kind]):
            continue
        column = column_of(kind, transform)
        for _ in range(200):
            values = typed.pool(rng, kind, 4)
            parts = [int(transformed(value, column)) for value in values]
            old = [part + 1 if part < 0 and rng.random() < 0.5 else part for part in parts]
            leaf = typed.leaf(rng, field, values)
            kept = might_match_partitions(leaf, [column], [json.dumps([part]) for part in old]).tolist()
            for value, part, might in zip(values, old, kept, strict=True):
                assert might or not matches(leaf, {"c": value}), (leaf, value, part)


def test_numbers_that_were_int_when_they_were_truncated() -> None:
    """Java's subtraction wraps around; a column that became long since has partitions wrapped as int."""
    least, column = -(2**31), column_of("long", TruncateTransform(10))
    partitions = ["[2147483646]", "[0]", "[-2147483640]"]
    for op in (Op.EQ, Op.LE, Op.GE):
        assert might_match_partitions(Compare(Field(1, "c", "long"), op, least), [column], partitions)[0], op
    below = might_match_partitions(Compare(Field(1, "c", "long"), Op.LT, -5), [column], partitions)
    assert below.tolist() == [True, False, True]


def test_void_and_what_is_not_known_prove_nothing() -> None:
    fields = [
        PartitionField(1000, 1, "gone", IcebergTransform(VoidTransform())),
        PartitionField(1001, 2, "dropped", IcebergTransform(IdentityTransform())),
        PartitionField(1002, 1, "kept", IcebergTransform(IdentityTransform())),
    ]
    columns = partition_columns(fields, {1: "long"})
    assert [(column.place, column.field.name) for column in columns] == [(2, "kept")]
    leaf = Compare(Field(1, "c", "long"), Op.EQ, 5)
    assert might_match_partitions(leaf, columns, ["[null, 1, 5]", "[null, 5, 1]"]).tolist() == [True, False]
    assert might_match_partitions(leaf, [], ["[null, 1, 5]"]).tolist() == [True]


@pytest.mark.parametrize("kind", typed.KINDS)
def test_values_of_partitions_are_read_as_they_are_written(kind: str) -> None:
    """From JSON, of files, and from Iceberg's bytes, of manifests."""
    values = [value for value in typed.pool(random.Random(kind), kind, 50) if value == value]
    decoded = json.loads(json.dumps([shown(value) for value in values]))
    assert in_form(kind, [*decoded, None]) == typed.arrow(kind, [*values, None])
    python: list[Any] = list(values)
    if base_type(kind) == "decimal":
        scale = int(kind.rstrip(")").split(",")[1])
        python = [Decimal(f"{value}E-{scale}") for value in python]
    data = [to_bytes(TYPES[kind], value) for value in python]
    assert from_bytes(kind, pa.array([*data, None], pa.binary())) == typed.arrow(kind, [*values, None])


# -- the transforms themselves

MOST = 2**31 - 1
HASHES: list[tuple[str, Value, int]] = [  # of the specification, appendix B
    ("int", 34, 2017239379),
    ("long", 34, 2017239379),
    ("date", 17486, -653330422),
    ("time", 81_068_000_000, -662762989),
    ("timestamp", 1_510_871_468_000_000, -2047944441),
    ("timestamp", 1_510_871_468_000_001, -1207196810),
    ("timestamptz", 1_510_871_468_000_000, -2047944441),
    ("timestamptz", 1_510_871_468_000_001, -1207196810),
    ("timestamp_ns", 1_510_871_468_000_000_000, -2047944441),
    ("timestamp_ns", 1_510_871_468_000_001_001, -1207196810),
    ("timestamptz_ns", 1_510_871_468_000_000_000, -2047944441),
    ("string", "iceberg", 1210000089),
    ("uuid", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), 1488055340),
    ("fixed[4]", bytes([0, 1, 2, 3]), -188683207),
    ("binary", bytes([0, 1, 2, 3]), -188683207),
    ("decimal(4, 2)", 1420, -500754589),
]


@pytest.mark.parametrize(("kind", "value", "hashed"), HASHES)
def test_hashes_of_the_specification(kind: str, value: Value, hashed: int) -> None:
    for buckets in (MOST, 16, 7):
        assert transformed(value, column_of(kind, BucketTransform(buckets))) == (hashed & MOST) % buckets


@pytest.mark.parametrize(
    ("kind", "width", "value", "cut"),
    [
        ("int", 10, 1, 0),
        ("int", 10, -1, -10),
        ("long", 10, 1, 0),
        ("long", 10, -1, -10),
        ("decimal(4, 2)", 50, 1065, 1050),
        ("string", 3, "iceberg", "ice"),
        ("binary", 3, bytes([1, 2, 3, 4, 5]), bytes([1, 2, 3])),
        ("string", 2, "𐀀é!", "𐀀é"),
    ],
)
def test_truncation_of_the_specification(kind: str, width: int, value: Value, cut: Value) -> None:
    assert transformed(value, column_of(kind, TruncateTransform(width))) == cut


@pytest.mark.parametrize(
    ("transform", "date", "moment"),
    [
        (YearTransform(), 47, 47),
        (MonthTransform(), 575, 575),
        (DayTransform(), 17501, 17501),
        (HourTransform(), None, 420034),
    ],
    ids=str,
)
def test_times_of_the_specification(transform: Any, date: int | None, moment: int) -> None:
    """2017-12-01 10:00, and the microsecond before 1970."""
    if date is not None:
        assert transformed(17501, column_of("date", transform)) == date
        assert transformed(-1, column_of("date", transform)) == -1
    for kind, unit in (
        ("timestamp", 1),
        ("timestamptz", 1),
        ("timestamp_ns", 1000),
        ("timestamptz_ns", 1000),
    ):
        column = column_of(kind, transform)
        assert transformed((17501 * typed.DAY + 36_000_000_000) * unit, column) == moment
        assert transformed(-1, column) == -1


JAVA = {"bucket": BucketTransform, "truncate": TruncateTransform}
TIMES = {"years": YearTransform, "months": MonthTransform, "days": DayTransform, "hours": HourTransform}
SPARKS = ("int", "long", "decimal(4, 2)", "decimal(9, 0)", "decimal(18, 6)", "decimal(38, 10)")
SPARKS += ("date", "timestamp", "timestamptz", "string", "binary")
MANY = 2_000


def asked(kind: str) -> Iterator[tuple[str, Transform[Any, Any]]]:
    for name, make in JAVA.items():
        for number in (1, 16, 97):
            if make(number).can_transform(TYPES[kind]):
                yield f"lake.system.{name}({number}, x)", make(number)
    for name, made in TIMES.items():
        if made().can_transform(TYPES[kind]):
            yield f"lake.system.{name}(x)", made()


@pytest.mark.parametrize("kind", SPARKS)
def test_transforms_are_those_of_java(spark: SparkSession, kind: str) -> None:
    rng = random.Random(f"java {kind}")
    values = typed.pool(rng, kind, MANY)
    frame = spark.createDataFrame(pa.table({"x": typed.stored(kind, values)}))
    calls = list(asked(kind))
    answers = frame.selectExpr(*(f"{call} AS c{number}" for number, (call, _) in enumerate(calls))).toArrow()
    for answer, (call, transform) in zip(answers.columns, calls, strict=True):
        column = column_of(kind, transform)
        mine = [seen(value, column) for value in values]
        if base_type(kind) == "decimal":  # Spark has no place for what gets a digit more
            most = 10 ** TYPES[kind].precision  # type: ignore[attr-defined]
            mine = [part if isinstance(part, int) and abs(part) < most else None for part in mine]
        if pa.types.is_date32(answer.type):
            answer = answer.cast(pa.int32())
        expected = answer.combine_chunks()
        formed = typed.stored(column.field.type, mine)
        wrong = [
            (value, here, there)
            for value, here, there in zip(values, formed.to_pylist(), expected.to_pylist(), strict=True)
            if here != there
        ]
        assert not wrong, (call, wrong[:3])


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
@pytest.mark.parametrize("kind", ["variant", "fixed-point(3)", "quaternion(3)"])
def test_types_that_are_not_known_prove_nothing(transform: Transform[Any, Any], kind: str) -> None:
    spec = [PartitionField(1000, 1, "p", IcebergTransform(transform))]
    assert partition_columns(spec, {1: str(ForeignType(kind))}) == []
