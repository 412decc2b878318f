"""`analyze_tables`: the statistics of several tables, where an error of one does not stop the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from rookery.api.analyze import AnalyzeReport, analyze
from rookery.api.lake import Lake
from rookery.api.progress import ProgressOf
from rookery.model import Engine, MachineError, Report, Sheet
from rookery.tables.java_errors import as_rookery

__all__ = ["AnalyzedTables", "analyze_tables"]

_UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"


@dataclass(frozen=True, slots=True)
class AnalyzedTables(Report):
    """The reports of several tables, and what failed."""

    tables: tuple[AnalyzeReport, ...]
    failed: tuple[str, ...] = ()

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether any table failed."""
        return bool(self.failed)

    def sheets(self) -> Sequence[Sheet]:
        """The tables of all reports."""
        return [sheet for report in self.tables for sheet in report.sheets()]

    def details(self) -> Sequence[str]:
        """The details of all reports."""
        return [line for report in self.tables for line in report.details()]


def analyze_tables(
    lake: Lake,
    patterns: Sequence[str],
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    engine: str = Engine.AUTO,
    progress: ProgressOf = lambda table: nullcontext(),
    tell: Callable[[str], None] = lambda message: None,
    **options: Any,
) -> AnalyzedTables:
    """Analyze the tables that patterns match, with the options of `rookery.analyze`.

    Spark is started when the first table needs it. With *master* or *conf*, and under `spark-submit`, which
    has started it, Spark analyzes all tables unless *engine* states something else. An error of one table is
    passed to *tell*, and the next is analyzed; that of a single table, or of a machine that cannot start
    Spark for any of them, is raised.
    """
    if engine == Engine.AUTO and (master or conf or _UNDER_SPARK_SUBMIT in os.environ):
        engine = Engine.SPARK
    names = [str(name) for name in lake.find_all(patterns)]
    spark = cache(partial(lake.spark, master=master, conf=conf))
    done: list[AnalyzeReport] = []
    failed: list[str] = []
    for name in names:
        with progress(name) as advance:
            try:
                done.append(analyze(spark, name, lake=lake, engine=engine, progress=advance, **options))
            except Exception as error:  # an error of one table does not stop the next
                cannot_start = isinstance(error, MachineError) and not spark.cache_info().currsize
                if len(names) == 1 or (cannot_start and engine == Engine.SPARK):
                    raise
                failed.append(f"{name}: {as_rookery(error, f'analyze of {name}').message}")
                tell(failed[-1])
    return AnalyzedTables(tuple(done), tuple(failed))
