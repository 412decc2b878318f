"""Columns of types that PyIceberg does not know, in tables that Iceberg's Java library commits to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.maintain.pipeline import NAMES, maintain_table
from rookery.maintain.steps.step import Outcome
from rookery.model import UsageError
from rookery.tables.iceberg.java_types import java_knows
from rookery.tables.iceberg.jvm import load_java_table
from rookery.tables.java_errors import refused_types
from tests.foreign import FILES, FOREIGN, FUTURE, KINDS, OTHERS, ROWS, make_foreign, metadata_text
from tests.interop.analysis import read_statistics, statistics_path
from tests.lakehouse import tables
from tests.maintain.tending import BRISK, by_step, maintained_of

COMMITTED = {"statistics", "last-updated-ms", "metadata-log"}  # what registering statistics may change
FLAT = "n int, v variant, w string"
NESTED = f"{FLAT}, s struct<x string, v variant>, l array<variant>, m map<string, variant>"
_VECTORIZED = "spark.sql.iceberg.vectorization.enabled"


@contextmanager
def by_row(spark: SparkSession) -> Iterator[None]:
    """Let Spark delete from tables with a variant: Iceberg's vectorized reader fails on their files."""
    spark.conf.set(_VECTORIZED, "false")
    try:
        yield
    finally:
        spark.conf.unset(_VECTORIZED)


def fill(spark: SparkSession, name: str, nested: bool, files: int = 3) -> None:
    more = ", named_struct('x', concat('x', id % 3), 'v', parse_json('[1]'))"
    more += ", array(parse_json('1')), map('k', parse_json('null'))"
    for number in range(files):
        rows = f"range({number * 40}, {number * 40 + 40}, 1, 1)"
        spark.sql(
            f"INSERT INTO {name} SELECT cast(id AS int), parse_json(concat('{{\"a\": ', id, '}}')), "
            f"concat('w', id % 5){more if nested else ''} FROM {rows}"
        )


def changed_keys(before: str, after: str) -> set[str]:
    one, two = json.loads(before), json.loads(after)
    return {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}


@pytest.mark.parametrize("columns", [FLAT, NESTED], ids=["flat", "nested"])
def test_variant(spark: SparkSession, lake: Lake, columns: str) -> None:
    with tables(spark) as make:
        name = make(columns, format_version=3)
        nested = columns == NESTED
        fill(spark, name, nested)
        with by_row(spark):
            spark.sql(f"DELETE FROM {name} WHERE n = 3")
        handle = rookery.table(name, lake)
        handle.add_index("bitmap", "w")
        before = metadata_text(lake, name)
        report = rookery.analyze(spark, name, lake=lake, histogram=["n"], top_k=["w"])
        assert changed_keys(before, metadata_text(lake, name)) <= COMMITTED
        assert "statistics" in changed_keys(before, metadata_text(lake, name))

        foreign = {"v", "s.v", "l.element", "m.value"} if nested else {"v"}
        assert report.skipped == dict.fromkeys(foreign, "columns of type variant are not analyzed")
        exact = {"n": 119, "w": 5} | ({"s.x": 3, "m.key": 1} if nested else {})
        stats = {column.name: column for column in handle.stats().columns}
        assert {key: stats[key].ndv for key in exact} == exact
        assert all(stats[key].ndv is stats[key].min is stats[key].max is None for key in foreign)
        assert stats["n"].rows is not None
        names = {field.id: field.name for field in handle.load()[0].fields()}
        registered = read_statistics(statistics_path(name, lake))
        assert {names[number] for number in registered} == exact.keys()

        assert handle.explain("n >= 100").stages[-1].files_out == 1
        for where in ("v IS NULL", "v IS NOT NULL", "variant_get(v, '$.a', 'int') = 7"):
            assert handle.explain(where).stages[-1].files_out == 3
        assert (handle.count(), handle.count("n < 5"), handle.count("w = 'w3'")) == (119, 4, 23)
        assert handle.read("n = 5", columns=["n", "w"]).to_pylist() == [{"n": 5, "w": "w0"}]
        with pytest.raises(UsageError, match="'v' has a type that is not read here: variant"):
            handle.read("n = 5")

        assert handle.scan(spark, "n = 5", ["n"]).count() == 1
        assert handle.scan(spark, "v IS NOT NULL").count() == 119
        assert handle.scan(spark, "variant_get(v, '$.a', 'int') = 7 AND n < 50").first()["n"] == 7  # type: ignore[index]
        (row,) = rookery.sql(spark, f"SELECT v FROM {name} WHERE n = 50", lake).collect()
        assert row["v"].toPython() == {"a": 50}


def test_maintenance_of_a_table_with_a_variant(spark: SparkSession, lake: Lake) -> None:
    with tables(spark) as make:
        name = make(FLAT, format_version=3)
        fill(spark, name, nested=False, files=6)
        done = by_step(maintain_table(maintained_of(lake, name, spark, BRISK)))
        assert {step: found.error for step, found in done.items() if found.error} == {}
        assert done["rewrite data files"].outcome is Outcome.DONE
        assert done["refresh statistics"].outcome is Outcome.DONE
        assert rookery.table(name, lake).count() == 240
        kind = json.loads(metadata_text(lake, name))["schemas"][0]["fields"][1]["type"]
        assert kind == "variant"
        found = rookery.sql(spark, f"SELECT v FROM {name} WHERE n = 50", lake).collect()
        assert [row["v"].toPython() for row in found] == [{"a": 50}]


@contextmanager
def foreign_table(lake: Lake, kind: Any) -> Iterator[str]:
    name = f"db.f_{uuid.uuid4().hex[:12]}"
    make_foreign(lake, name, kind)
    try:
        yield f"lake.{name}"
    finally:
        lake.catalog.drop_table(name)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("geometry(srid:0)", "geometry(srid:0)"),
        ("geography(srid:4326, karney)", "geography(srid:4326, karney)"),
        ("geometry", "geometry(OGC:CRS84)"),  # Java spells out what is meant
    ],
)
def test_what_spark_cannot_read(spark: SparkSession, lake: Lake, given: str, kind: str) -> None:
    """Java commits statistics, and the type is what it was."""
    with foreign_table(lake, given) as name:
        made = metadata_text(lake, name)
        load_java_table(spark, lake.table_name(name)).updateProperties().set("a", "b").commit()
        before = metadata_text(lake, name)  # as Java writes what PyIceberg wrote
        report = rookery.analyze(spark, name, lake=lake)
        after = metadata_text(lake, name)
        assert report.committed
        assert report.skipped == dict.fromkeys(FOREIGN, f"columns of type {kind} are not analyzed")
        assert changed_keys(before, after) <= COMMITTED
        (one,), (two,) = (
            json.loads(made.replace(f'"{given}"', f'"{kind}"'))["schemas"],
            json.loads(after)["schemas"],
        )
        assert one["fields"] == two["fields"]
        names = {field.id: field.name for field in rookery.table(name, lake).load()[0].fields()}
        registered = read_statistics(statistics_path(name, lake))
        assert {names[number] for number in registered} == set(OTHERS)
        if given == kind:  # coordinates that Spark does not know
            _check_refusals(spark, lake, name)
        done = by_step(maintain_table(maintained_of(lake, name, spark, BRISK)))
        assert {step: found.error for step, found in done.items() if found.error} == {}
        assert {done[step].outcome for step in NAMES[2:5]} == {Outcome.NOT_NEEDED}
        assert f"Spark cannot read 'g', a column of type {kind}" in done["rewrite data files"].why


def test_what_java_cannot_load(spark: SparkSession, lake: Lake) -> None:
    with foreign_table(lake, FUTURE) as name:
        before = metadata_text(lake, name)
        report = rookery.analyze(spark, name, lake=lake)
        assert not report.committed
        assert report.skipped.keys() == set(FOREIGN)
        assert f"does not know the type {FUTURE}" in report.skipped["g"]
        assert metadata_text(lake, name) == before
        _check_refusals(spark, lake, name, loaded=False)


def _check_refusals(spark: SparkSession, lake: Lake, name: str, *, loaded: bool = True) -> None:
    handle = rookery.table(name, lake)

    def query() -> object:
        if loaded:
            return rookery.sql(spark, f"SELECT n FROM {name} WHERE n = 5", lake)
        jvm: Any = spark._jvm  # Iceberg's catalog would retry for a minute
        with refused_types(name):
            return jvm.org.apache.iceberg.TableMetadataParser.fromJson(metadata_text(lake, name))

    for call in (lambda: handle.scan(spark, "n = 5"), query):
        with pytest.raises(UsageError, match="Spark cannot read ") as caught:
            call()
        assert "\n" not in str(caught.value)
        assert "table.read" in (caught.value.hint or "")
    assert handle.read("n = 5", columns=["n"]).num_rows == 1
    assert handle.count() == FILES * ROWS


def test_java_knows_the_types_that_iceberg_says(spark: SparkSession) -> None:
    jvm: Any = spark._jvm

    def parses(kind: object) -> bool:
        field = {"id": 1, "name": "c", "required": False, "type": kind}
        try:
            jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps({"type": "struct", "fields": [field]}))
        except (Py4JJavaError, IllegalArgumentException):  # which PySpark makes of some
            return False
        return True

    kinds = [
        *KINDS,
        "geography",
        "unknown",
        "fixed[3]",
        "decimal(9,2)",
        "time",
        "timestamptz_ns",
        "uuid",
        "Void",
    ]
    for kind in kinds:
        assert parses(kind) is java_knows(kind if isinstance(kind, str) else json.dumps(kind)), kind
