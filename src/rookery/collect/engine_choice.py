"""Where an analysis runs: in this process, if the work is small and it can do it, else on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import Engine, MachineError, UsageError, counted, in_bytes
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_LIMIT = 1 << 30  # bytes of files; less is read here sooner than Spark has started


class NeedsSparkError(Exception):
    """This process cannot do the work; the message states why."""


def session_for(
    engine: Engine, start: Callable[[], SparkSession], table: Table, why_not_local: str | None, size: int
) -> SparkSession | None:
    """Return the session to work in; None for this process, which can do it unless *why_not_local*.

    *size* is the number of bytes to read.
    """
    if engine is Engine.SPARK:
        return start()
    if engine is Engine.LOCAL:
        if why_not_local is not None:
            raise UsageError(
                f"{table.name} cannot be analyzed without Spark: {why_not_local}",
                hint="use the engine spark, or auto; Spark needs Java and pip install 'rookery[spark]'",
            )
        return None
    if why_not_local is None and size <= LOCAL_LIMIT:
        return None
    try:
        return start()
    except MachineError as error:
        if why_not_local is not None:
            raise MachineError(
                f"{error.message}; Spark is needed: {why_not_local}", hint=error.hint
            ) from error
        raise MachineError(
            f"{error.message}; Spark is used, as {in_bytes(size)} are to be read",
            hint=f"{error.hint}; or use the engine local, which takes longer",
        ) from error


def not_committable(table: Table) -> str | None:
    """Return why this process cannot register statistics; None if it can, or if none are registered."""
    return table.not_committable if table.not_loadable is None else None


def not_readable(files: pa.Table) -> str | None:
    """Return why this process cannot read data files; None if it can.

    Parquet files with deletes are read as `table.read` reads them, by field ids.
    """
    others = files.filter(pc.not_equal(files["format"], "parquet"))
    if others.num_rows:
        kinds = " and ".join(sorted(kind.upper() for kind in pc.unique(others["format"]).to_pylist()))
        return f"{counted(others.num_rows, 'file')} of format {kinds}"
    return None
