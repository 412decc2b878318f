"""Refreshing distributions: new files are merged in; all is collected again where that is not enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.collect import plan
from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.distributions import STALE_SHARE, DistributionSketches, collect_rows
from rookery.collect.prepare import AnalyzePlan
from rookery.sidecar import DistributionHeader, Store
from rookery.sidecar.live import live_files
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """The rows to read for distributions, and what they are merged with."""

    wants: DistributionRequest
    files: pa.Table
    from_scratch: bool
    rows_gone: int  # from the files that the state describes


def plan_rows(table: Table, work: AnalyzePlan, wants: DistributionRequest) -> RowsPlan:
    """Plan which files are read for distributions: new ones, or all."""
    if not wants.fields:
        return RowsPlan(wants, work.live.decoded.slice(0, 0), False, 0)
    gone = _rows_gone(work)
    before = work.state.header.rows if work.state is not None else None
    from_scratch = work.state is None or before is None or not wants.are_collected_in(work.state)
    if before is not None and before.rows_gone + gone > STALE_SHARE * max(before.rows_seen, 1):
        from_scratch = True
    return RowsPlan(wants, _all_files(table, work) if from_scratch else _new_files(work), from_scratch, gone)


def refresh_rows(
    spark: SparkSession | None, table: Table, store: Store, work: AnalyzePlan, planned: RowsPlan
) -> tuple[DistributionHeader | None, DistributionSketches, int]:
    """Return the distributions of the snapshot: what they describe, the sketches, and the rows read now."""
    wants = planned.wants
    if not wants.fields:
        return None, DistributionSketches(), 0
    collected = collect_rows(spark, table, store, work.snapshot, planned.files, wants)
    before = work.state.header.rows if work.state is not None else None
    if planned.from_scratch or work.state is None or before is None:
        return _index(wants, collected.rows, 0), collected, collected.rows
    known = DistributionSketches(dict(work.state.quantiles), dict(work.state.frequent), before.rows_seen)
    merged = known.merge(collected)
    return _index(wants, merged.rows, before.rows_gone + planned.rows_gone), merged, collected.rows


def _index(wants: DistributionRequest, rows_seen: int, rows_gone: int) -> DistributionHeader:
    return DistributionHeader(
        histogram=tuple(column.id for column in wants.histogram),
        top_k=tuple(column.id for column in wants.top_k),
        sample=wants.sample,
        rows_seen=rows_seen,
        rows_gone=rows_gone,
    )


def _rows_gone(work: AnalyzePlan) -> int:
    """The rows of the state's files that were removed from the table."""
    if work.state is None or not work.live.removed:
        return 0
    stays = np.zeros(work.state.files.num_rows, bool)
    stays[work.live.carried] = True
    removed = work.state.files.filter(pa.array(~stays))
    # A file that is in two segments counts once.
    first = np.unique(np.array(removed["key"].to_pylist(), "S16"), return_index=True)[1]
    return int(pc.sum(removed["rows"].take(pa.array(first))).as_py() or 0)


def _all_files(table: Table, work: AnalyzePlan) -> pa.Table:
    if work.live.decoded_all:
        return work.live.decoded
    return live_files(table, work.snapshot, None, decode_all=True).decoded


def _new_files(work: AnalyzePlan) -> pa.Table:
    known = plan.coverage(work.live.keys, work.state)
    return work.live.decoded.filter(pa.array(~known))
