"""Tables of PyIceberg with declared statistics, analysed with no JVM, and their estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from rookery.api.estimate import EstimateReport, estimate
from rookery.collect.choose import Choice, choose
from rookery.collect.declared_statistics import change_by, distributions
from rookery.collect.keep import keep
from rookery.collect.prepare import prepare
from rookery.collect.progress import silent
from rookery.collect.refresh_distributions import plan_rows, refresh_rows
from rookery.collect.segments import write_groups
from rookery.sidecar import State
from tests.collect.plain import PlainTable


def analyse(table: PlainTable, **choice: Any) -> State:
    """Collect what is chosen: all of an analysis but the commit of statistics."""
    loaded, snapshot, chosen = table.load(), table.snapshot(), Choice(**choice)
    columns = loaded.fields(snapshot)
    fields, _ = choose(columns, chosen)
    work = prepare(loaded, table.store, snapshot, fields, False, change_by(columns, chosen))
    written = write_groups(None, loaded, table.store, work, silent)
    rows = plan_rows(loaded, work, distributions(work.declared, columns))
    header, sketches, _ = refresh_rows(None, loaded, table.store, work, rows)
    return keep(loaded, table.store, work, written, (header, sketches))


def estimated(table: PlainTable, where: str | None = None, *group_by: str) -> EstimateReport:
    return estimate(table.load(), table.store, where, group_by=group_by)


def table_of(folder: Path, *files: pa.Table) -> PlainTable:
    """A table with a file for each of these."""
    table = PlainTable(folder, files[0].schema)
    for rows in files:
        table.append(rows)
    return table


def sources(report: EstimateReport) -> list[str]:
    return [line.source for line in report.conditions]
