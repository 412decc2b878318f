"""Two sessions of one context, of which one is attached."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from benchmarks.lake import CATALOG, Bench
from rookery.spark import spark_catalog

ALONE = "Spark alone"


@dataclass(frozen=True)
class Sessions:
    """One that is attached, and another that is not."""

    attached: SparkSession
    alone: SparkSession

    @classmethod
    def of(cls, bench: Bench) -> Sessions:
        """The second one is given the catalog: settings of a running session are its own."""
        other = bench.spark.newSession()
        for key, value in spark_catalog(bench.lake.config).conf.items():
            other.conf.set(key, value)
        return cls(bench.spark, other)

    def use(self, namespace: str) -> None:
        for spark in (self.attached, self.alone):
            spark.sql(f"USE {CATALOG}.{namespace}")
