"""One run per table at a time, across machines: leases in a database, with expiry."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    Float,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from rookery.maintain.runs.database import DatabaseError, make_tables, translate_db_errors
from rookery.maintain.runs.processes import is_gone, machine
from rookery.model import RookeryError

log = logging.getLogger(__name__)

METADATA = MetaData()
LEASES = Table(
    "rookery_leases",
    METADATA,
    Column("table_key", String(255), primary_key=True),
    Column("holder", String(32), nullable=False),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("acquired", Float(53), nullable=False),
    Column("expires", Float(53), nullable=False),
)
TTL = 60.0
_BEATS = 3  # renewals in the life of a lease
# Clocks of machines differ; those that share a server use its clock.
_SERVER_CLOCKS = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "mysql": "SELECT unix_timestamp(now(6))",
    "mariadb": "SELECT unix_timestamp(now(6))",
}


class LeaseTakenError(RookeryError):
    """Another run has the table."""


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of a database. A *clock*, in seconds, replaces the server's and this machine's."""

    engine: Engine
    ttl: float = TTL
    clock: Callable[[], float] | None = None
    beating: bool = True  # whether a thread renews what is held

    @contextmanager
    def hold(self, key: str) -> Iterator[Lease]:
        """Take the lease of a table, renew it while the body runs, and give it back."""
        lease = self.acquire(key)
        stop = threading.Event()
        beat = threading.Thread(target=_beat, args=(lease, stop, self.ttl / _BEATS), daemon=True)
        if self.beating:
            beat.start()
        try:
            yield lease
        finally:
            stop.set()
            if self.beating:
                beat.join()
            lease.release()

    def close(self) -> None:
        """Close the database."""
        self.engine.dispose()

    def acquire(self, key: str) -> Lease:
        """Take the lease of a table: one free, expired, or whose process on this machine has ended.

        Each statement changes a row only if it is still as it was read, so of many attempts one succeeds.
        """
        make_tables(self.engine, METADATA)
        local = self.local()
        held = self.row(key)
        now = self.now()
        holder = uuid.uuid4().hex
        lease_row = {
            "holder": holder,
            "host": machine(),
            "pid": os.getpid(),
            "acquired": now,
            "expires": now + self.ttl,
        }
        gone = held.holder if held is not None and is_gone(held.host, held.pid) else ""
        free = or_(LEASES.c.expires <= now, LEASES.c.holder == gone)
        if not self._changes(update(LEASES).where(LEASES.c.table_key == key, free).values(lease_row)):
            self._insert(key, lease_row)
        return Lease(self, key, holder, local + self.ttl)

    def _insert(self, key: str, values: dict[str, Any]) -> None:
        try:
            with translate_db_errors(self.engine), self.engine.begin() as connection:
                connection.execute(insert(LEASES).values(table_key=key, **values))
        except DatabaseError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise _taken(self.row(key)) from None

    def row(self, key: str) -> Row[Any] | None:
        """Who holds the lease of a table, or held it last."""
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            return connection.execute(select(LEASES).where(LEASES.c.table_key == key)).first()

    def renew(self, lease: Lease) -> bool:
        """Put off the end of a lease; false if another has it."""
        is_own = LEASES.c.table_key == lease.key, LEASES.c.holder == lease.holder
        return self._changes(update(LEASES).where(*is_own).values(expires=self.now() + self.ttl))

    def give_back(self, lease: Lease) -> bool:
        """Free a lease; false if another has it by now."""
        is_own = LEASES.c.table_key == lease.key, LEASES.c.holder == lease.holder
        return self._changes(delete(LEASES).where(*is_own))

    def _changes(self, statement: Any) -> bool:
        with translate_db_errors(self.engine), self.engine.begin() as connection:
            return bool(connection.execute(statement).rowcount == 1)

    def now(self) -> float:
        """The time that all holders share: the server's, or this machine's for a database in a file."""
        if self.clock is not None:
            return self.clock()
        query = _SERVER_CLOCKS.get(self.engine.dialect.name)
        if query is None:
            return time.time()
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            return float(connection.execute(text(query)).scalar_one())

    def local(self) -> float:
        """A monotonic time that needs no database."""
        return self.clock() if self.clock is not None else time.monotonic()


class Lease:
    """A lease that is held. Once lost it stays lost, and the work that it guarded must stop."""

    def __init__(self, leases: Leases, key: str, holder: str, until: float) -> None:
        self._leases = leases
        self.key = key
        self.holder = holder
        self._until = until
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether another process has taken it, or may have, as it could not be renewed in time."""
        if not self._lost and self._leases.local() >= self._until:
            self._lost = True
        return self._lost

    def beat(self) -> None:
        """Renew it once; after a failure the next beat tries again."""
        if self.lost:
            return
        local = self._leases.local()
        try:
            renewed = self._leases.renew(self)
        except DatabaseError as error:
            log.warning("a lease could not be renewed: %s", error)
            return
        if renewed:
            self._until = local + self._leases.ttl
        else:
            self._lost = True

    def release(self) -> None:
        """Give it back; if that fails, it expires."""
        try:
            self._leases.give_back(self)
        except DatabaseError as error:
            log.warning("a lease could not be released, it expires in %.0f s: %s", self._leases.ttl, error)


def _beat(lease: Lease, stop: threading.Event, every: float) -> None:
    while not stop.wait(every) and not lease.lost:
        lease.beat()


def _taken(held: Row[Any] | None) -> LeaseTakenError:
    who = "" if held is None else f" by process {held.pid} on {held.host.partition('#')[0]}"
    return LeaseTakenError(
        f"the table is being maintained{who}", hint="wait for it to end; `rookery history` shows it"
    )
