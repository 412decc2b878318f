"""A folder that has two names, with tables in it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import DEFAULT, Policy
from rookery.maintain.steps.step import StepReport
from tests.maintain.tending import BRISK, by_step, maintained_of, missing_files, rows_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMOVE, EXPIRE = "remove orphan files", "expire snapshots"
POLICY = replace(BRISK, snapshots=DEFAULT.snapshots)


@dataclass
class Place:
    """A folder under two names, and a namespace for tables in it."""

    spark: SparkSession
    lake: Lake
    real: Path
    alias: Path
    namespace: str

    def create(self, location: str, **properties: str) -> str:
        name = f"lake.{self.namespace}.t{uuid.uuid4().hex[:8]}"
        stated = ", ".join(f"'{key.replace('_', '.')}'='{value}'" for key, value in properties.items())
        said = f"TBLPROPERTIES ({stated})" if stated else ""
        self.spark.sql(f"CREATE TABLE {name} (id bigint) USING iceberg LOCATION '{location}' {said}")
        return name

    def insert(self, name: str, *numbers: int) -> None:
        self.spark.sql(f"INSERT INTO {name} VALUES {', '.join(f'({n})' for n in numbers)}")

    def maintain(
        self, name: str, step: str = REMOVE, policy: Policy = POLICY, *, forced: bool = False
    ) -> StepReport:
        """Take a step on a table, and see that it has all its rows and files after it."""
        self.spark.catalog.refreshTable(name)
        rows = rows_hash(self.spark, name)
        maintained = maintained_of(self.lake, name, self.spark, policy, forced=forced)
        report = by_step(maintain_table(maintained, only=[step]))[step]
        self.spark.catalog.refreshTable(name)
        assert missing_files(self.lake, name) == []
        assert rows_hash(self.spark, name) == rows
        return report
