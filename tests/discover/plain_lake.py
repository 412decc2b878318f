"""A lake of PyIceberg tables, analysed with no JVM: all of it but the commit of statistics."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rookery.api.lake import Lake
from rookery.collect.choose import Choice, choose
from rookery.collect.declared_statistics import change_by
from rookery.collect.distributions import DistributionSketches
from rookery.collect.keep import keep
from rookery.collect.prepare import prepare
from rookery.collect.progress import silent
from rookery.collect.segments import write_groups
from rookery.sidecar import State
from tests.collect.plain import NO_SPARK


def add_table(lake: Lake, name: str, *files: pa.Table) -> None:
    """Create a table of these files; it is not analyzed."""
    table = lake.catalog.create_table(f"db.{name}", files[0].schema)
    for rows in files:
        table.append(rows)


def analyse(
    lake: Lake, name: str, *, column_sets: Sequence[tuple[str, ...]] = (), columns: tuple[str, ...] = ()
) -> State:
    """Describe a table as `analyze` does."""
    table, store = lake.open(f"db.{name}")
    snapshot = table.snapshot()
    assert snapshot is not None
    choice = Choice(columns=columns, column_sets=tuple(column_sets))
    fields, _ = choose(table.fields(snapshot), choice)
    work = prepare(table, store, snapshot, fields, False, change_by(table.fields(snapshot), choice))
    written = write_groups(NO_SPARK, table, store, work, silent)
    return keep(table, store, work, written, (None, DistributionSketches()))
