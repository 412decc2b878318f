"""A table's life by chance: after each step the refreshed statistics are those of a full recollection."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from tests.interop.analysis import compute_table_stats, kept, recollected, same_below
from tests.interop.conftest import NewTable
from tests.interop.test_analyze_incremental import Analyst

COLUMNS = "id bigint, part int, i int, f float, d decimal(9, 2), word string, s struct<x: int, y: string>"
PROMOTIONS = {"i": "bigint", "f": "double", "d": "decimal(18, 2)", "s.x": "bigint"}
# The same steps on every machine and every day; a failure shows as it is, for to shrink it takes minutes.
few = settings(
    max_examples=5,
    stateful_step_count=8,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
starts = st.integers(0, 30).map(lambda n: 20 * n)
residues = st.integers(0, 6)


class TableLife(RuleBasedStateMachine):
    """One table, from its creation through whatever may happen to it."""

    def __init__(self, spark: SparkSession, lake: Lake, new_table: NewTable, folder: Path) -> None:
        super().__init__()
        self.spark, self.lake, self.new_table, self.folder = spark, lake, new_table, folder
        self.numbers = itertools.count()
        self.promotions = dict(PROMOTIONS)
        self.spec: list[str] = []
        self.names = ["word"]
        self.history: list[int] = []

    @initialize(version=st.sampled_from([2, 3]), partitioned=st.booleans(), analysed=st.booleans())
    def create(self, version: int, partitioned: bool, analysed: bool) -> None:
        self.analyst = Analyst(self.spark, self.lake, self.new_table(COLUMNS, version))
        if partitioned:
            self.analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD part")
            self.spec.append("part")
        self.analyst.append(0, count=40)
        if analysed:
            self.analyst.analyze()

    # -- rows

    @rule(start=starts, count=st.sampled_from([1, 40, 90]))
    def append(self, start: int, count: int) -> None:
        self.history.append(self.analyst.snapshot())
        self.analyst.append(start, count=count)

    @rule(residue=residues, mode=st.sampled_from(["copy-on-write", "merge-on-read", "merge-on-read"]))
    def delete(self, residue: int, mode: str) -> None:
        self.history.append(self.analyst.snapshot())
        self.analyst.sql(f"ALTER TABLE TABLE_NAME SET TBLPROPERTIES ('write.delete.mode'='{mode}')")
        self.analyst.sql(f"DELETE FROM TABLE_NAME WHERE id % 7 = {residue}")

    @rule(part=st.integers(0, 2))
    def delete_a_part(self, part: int) -> None:
        self.analyst.sql(f"DELETE FROM TABLE_NAME WHERE part = {part}")

    @rule(start=starts)
    def overwrite(self, start: int) -> None:
        self.history.append(self.analyst.snapshot())
        frame = self.spark.table(self.analyst.name).where(f"id % 5 = {start % 5}").coalesce(1)
        rows = self.spark.createDataFrame(frame.collect(), frame.schema)
        rows.coalesce(1).writeTo(self.analyst.name).overwritePartitions()

    # -- maintenance

    @rule()
    def compact(self) -> None:
        self.analyst.call("rewrite_data_files", options="map('rewrite-all', 'true')")

    @rule()
    def rewrite_manifests(self) -> None:
        self.analyst.call("rewrite_manifests")

    @rule()
    def expire(self) -> None:
        self.analyst.call("expire_snapshots", older_than="TIMESTAMP '2100-01-01 00:00:00'", retain_last=1)
        self.history.clear()

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        to = data.draw(st.sampled_from(self.history))
        self.history = self.history[: self.history.index(to)]
        self.analyst.call("rollback_to_snapshot", snapshot_id=to)

    @rule()
    def analysed_by_iceberg(self) -> None:
        compute_table_stats(self.spark, self.analyst.name)

    @rule(columns=st.sampled_from([["id"], ["word_or_its_name", "s"], ["i", "d"]]), full=st.booleans())
    def analysed_in_part(self, columns: list[str], full: bool) -> None:
        names = [self.names[0] if name == "word_or_its_name" else name for name in columns]
        self.analyst.analyze(columns=names, full=full)

    # -- columns and partitions

    @rule()
    def add_column(self) -> None:
        self.analyst.sql(f"ALTER TABLE TABLE_NAME ADD COLUMN extra{next(self.numbers)} string")

    @rule()
    def drop_column(self) -> None:
        extras = [name for name in self.spark.table(self.analyst.name).columns if name.startswith("extra")]
        if extras:
            self.analyst.sql(f"ALTER TABLE TABLE_NAME DROP COLUMN {extras[0]}")

    @rule()
    def rename_column(self) -> None:
        name = f"word{next(self.numbers)}"
        self.analyst.sql(f"ALTER TABLE TABLE_NAME RENAME COLUMN {self.names[0]} TO {name}")
        self.names[0] = name

    @rule(first=st.sampled_from(["id", "d", "s"]))
    def reorder_columns(self, first: str) -> None:
        self.analyst.sql(f"ALTER TABLE TABLE_NAME ALTER COLUMN {first} FIRST")

    @precondition(lambda self: self.promotions)
    @rule(data=st.data())
    def promote_column(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(sorted(self.promotions)))
        self.analyst.sql(f"ALTER TABLE TABLE_NAME ALTER COLUMN {column} TYPE {self.promotions.pop(column)}")

    @rule()
    def evolve_partitions(self) -> None:
        if self.spec:
            self.analyst.sql(f"ALTER TABLE TABLE_NAME DROP PARTITION FIELD {self.spec.pop()}")
        else:
            self.spec.append("bucket(2, id)")
            self.analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD bucket(2, id)")

    # -- what always holds

    @invariant()
    def refreshed_equals_recollected(self) -> None:
        if not hasattr(self, "analyst"):
            return
        self.analyst.analyze()
        state = kept(self.analyst.name, self.lake)
        anew = recollected(self.spark, self.analyst.name, self.lake, self.folder / f"{next(self.numbers)}")
        for number, sketch in anew.items():
            assert same_below(state.thetas[number], sketch)
            assert state.thetas[number].theta <= sketch.theta
        self.analyst.exact()
        assert self.analyst.analyze(dry_run=True).files_to_read == 0


@pytest.mark.timeout(280)
def test_a_tables_life(spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path) -> None:
    run_state_machine_as_test(lambda: TableLife(spark, lake, new_table, tmp_path), settings=few)
