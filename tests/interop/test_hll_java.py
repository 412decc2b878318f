"""HLL sketches between Rookery and the DataSketches of Spark: the same bytes, the same numbers."""

from __future__ import annotations

from collections.abc import Iterable

import datasketches
import pytest
from pyspark.sql import SparkSession

from rookery.model import IN_MEMORY
from rookery.sketch import HllSketch
from rookery.sketch.hll_layout import HllKind, Mode, read_registers
from tests.interop.java import IcebergJava, JavaHll

COUNTS = {  # by lg k, numbers of values that lead through all modes
    4: [0, 1, 7, 8, 100, 40_000],
    8: [7, 8, 24, 25, 3_000],
    11: [192, 193, 20_000],
    12: [0, 5, 384, 385, 60_000],
    21: [100, 60_000],
}
CASES = [(lg_k, count) for lg_k, counts in COUNTS.items() for count in counts]
KINDS = [kind.name for kind in HllKind]


@pytest.fixture(scope="module")
def aggregated(spark: SparkSession) -> dict[tuple[int, int, int], bytes]:
    """Sketches that Spark has made of the numbers from a start on, by lg k, start and count."""
    wanted = [(lg_k, start, count) for lg_k, count in CASES for start in (0, count // 2)]
    columns = [
        f"hll_sketch_agg(id, {lg_k}) FILTER (WHERE id >= {start} AND id < {start + count})"
        for lg_k, start, count in wanted
    ]
    row = spark.range(100_000).selectExpr(*columns).first()
    assert row is not None
    return {key: bytes(value) for key, value in zip(wanted, row, strict=True)}


def assert_same(ours: HllSketch, java: JavaHll) -> None:
    assert (ours.lg_k, ours.kind.name) == (java.lg_k, java.kind)
    assert ours.estimate().value == pytest.approx(java.estimate, rel=1e-13)
    for deviations, bounds in java.bounds.items():
        estimate = ours.estimate(deviations)
        assert (estimate.low, estimate.high) == pytest.approx(bounds, rel=1e-12)


def state_of(sketch: HllSketch) -> bytes:
    """What a sketch knows, without the estimators, which depend on the order."""
    payload = sketch.encode()
    return read_registers(payload, IN_MEMORY)[0].tobytes() if sketch.mode is Mode.HLL else payload[8:]


def python_sketch(values: Iterable[int], lg_k: int, kind: HllKind) -> HllSketch:
    sketch = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type(kind.value))
    for value in values:
        sketch.update(value)
    return HllSketch(sketch)


@pytest.mark.parametrize(("lg_k", "count"), CASES)
def test_java_writes_and_we_read(
    java: IcebergJava, aggregated: dict[tuple[int, int, int], bytes], lg_k: int, count: int
) -> None:
    payload = aggregated[lg_k, 0, count]
    assert_same(HllSketch.decode(payload), java.hll(payload))
    for kind in HllKind:
        theirs = java.hll(payload, kind=kind.name)
        for form in (theirs.compact, theirs.updatable):
            sketch = HllSketch.decode(form)
            assert_same(sketch, theirs)
            again = java.hll(sketch.encode())
            assert again.estimate == theirs.estimate
            assert again.bounds == theirs.bounds
    whole = python_sketch(range(count), lg_k, HllKind.HLL_8)
    assert state_of(whole) == state_of(HllSketch.decode(payload))  # two languages, one hash


def test_every_mode_and_exceptions_are_among_them(
    java: IcebergJava, aggregated: dict[tuple[int, int, int], bytes]
) -> None:
    assert {HllSketch.decode(payload).mode for payload in aggregated.values()} == set(Mode)
    four_bits = java.hll(aggregated[11, 0, 20_000], kind="HLL_4")
    assert len(read_registers(four_bits.compact, IN_MEMORY)[1]) > 0
    assert len(four_bits.updatable) > len(four_bits.compact)


@pytest.mark.parametrize(("lg_k", "count"), CASES)
def test_we_merge_and_java_reads(
    java: IcebergJava, aggregated: dict[tuple[int, int, int], bytes], lg_k: int, count: int
) -> None:
    one, other = (aggregated[lg_k, start, count] for start in (0, count // 2))
    for kind in KINDS:
        payloads = [java.hll(payload, kind=kind).compact for payload in (one, other)]
        merged = HllSketch.decode(payloads[0]).merge(HllSketch.decode(payloads[1]))
        read = java.hll(merged.encode())
        assert_same(merged, read)
        union = java.hll(*payloads, lg_k=lg_k)
        assert state_of(merged) == state_of(HllSketch.decode(union.compact))
        # Coupons that turn into registers are counted in whatever order they stand.
        counted = merged.mode is Mode.HLL and HllSketch.decode(payloads[0]).mode is not Mode.HLL
        assert merged.estimate().value == pytest.approx(union.estimate, rel=1e-2 if counted else 1e-12)


def test_merged_over_different_numbers_of_registers(
    java: IcebergJava, aggregated: dict[tuple[int, int, int], bytes]
) -> None:
    fine, coarse = aggregated[12, 0, 60_000], aggregated[8, 1_500, 3_000]
    merged = HllSketch.decode(fine).merge(HllSketch.decode(coarse))
    assert_same(merged, java.hll(merged.encode()))
    assert merged.lg_k == 8
    union = java.hll(coarse, fine, lg_k=8)
    assert merged.estimate().value == pytest.approx(union.estimate, rel=1e-12)


def test_spark_reads_what_we_merge(
    spark: SparkSession, aggregated: dict[tuple[int, int, int], bytes]
) -> None:
    one, other = (HllSketch.decode(aggregated[12, start, 60_000]) for start in (0, 30_000))
    merged = one.merge(other)
    payloads = {"ours": merged, "one": one, "other": other}
    (row,) = spark.sql(
        "SELECT hll_sketch_estimate(:ours), hll_sketch_estimate(hll_union(:one, :other))",
        {name: bytearray(sketch.encode()) for name, sketch in payloads.items()},
    ).collect()
    assert row[0] == row[1] == round(merged.estimate().value)
    assert merged.estimate(3).low <= 90_000 <= merged.estimate(3).high
