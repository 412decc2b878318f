"""What `maintain` and `watch` have in common: one Spark session for all tables, and the leases of a lake."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.maintain.runs.database import open_engine
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases
from rookery.model import Engine, MachineError, TableName, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class SharedSession:
    """A Spark session that is started by the first call, and again if it has ended since."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None
        self._starting = threading.Lock()

    def __call__(self) -> SparkSession:
        """Return the session."""
        with self._starting:
            if self._session is None:
                self._session = self._start()
            elif not self.answers:
                from rookery.spark.sessions import discard_session  # pyspark is imported by now

                log.warning("the Spark session has ended; starting another")
                discard_session()
                self._session = self._start()
            return self._session

    @property
    def answers(self) -> bool:
        """Whether Spark answers; false only if it was started and has ended since."""
        if self._session is None:
            return True
        from rookery.spark.live import check_session  # where a session is, pyspark is

        try:
            check_session(self._session, iceberg=False)
        except MachineError:
            return False
        return True


def engine_of(lake: Lake) -> Engine:
    """Return the engine that collects statistics; that of a lake of a session is its session."""
    return Engine.AUTO if lake.session is None else Engine.SPARK


def check_catalog(lake: Lake, names: Iterable[TableName]) -> None:
    """Refuse tables of another catalog: neither Spark nor the leases would be theirs."""
    for name in names:
        if name.catalog != lake.name:
            raise UsageError(
                f"{name} belongs to another catalog than {lake.name}", hint=f"use --catalog {name.catalog}"
            )


def leases_of(lake: Lake, history: History) -> Leases:
    """The leases of a lake: in the catalog's own database if it has one, else beside the history."""
    database = lake.database
    return Leases(history.engine if database is None else open_engine(database, own=False))
