"""Opening the databases that hold history and leases, with clear errors when they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, MetaData, create_engine, event, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from rookery.io.redaction import one_line
from rookery.model import CatalogError, UsageError
from rookery.tables.config import home

HISTORY_VARIABLE = "ROOKERY_HISTORY"
_BUSY = 30.0  # seconds that SQLite waits for another writer


class DatabaseError(CatalogError):
    """A database that stores history or leases cannot be opened, read or written."""


def history_url(given: str | None = None) -> str:
    """Where history is stored: as given, else `$ROOKERY_HISTORY`, else SQLite in Rookery's home."""
    return given or os.environ.get(HISTORY_VARIABLE) or f"sqlite:///{home() / 'history.db'}"


def open_engine(url: str, *, own: bool = True) -> Engine:
    """Return an engine for a URL; *own* is false for a database of others, such as a catalog's."""
    parsed = _parsed(url)
    arguments: dict[str, Any] = {}
    sqlite = parsed.get_backend_name() == "sqlite"
    if sqlite:
        arguments["timeout"] = _timeout(parsed)
        if own:  # a missing database of another owner must not be created empty
            _make_folder(parsed)
    try:
        engine = create_engine(parsed, connect_args=arguments, pool_pre_ping=not sqlite, hide_parameters=True)
    except (ImportError, NoSuchModuleError) as error:
        raise UsageError(
            f"a {parsed.drivername} database cannot be opened: {one_line(str(error))}",
            hint="install the driver that SQLAlchemy names, or omit --history",
        ) from error
    if sqlite and own:
        event.listen(engine, "connect", _write_ahead)
    return engine


def _timeout(url: URL) -> float:
    stated = url.query.get("timeout", _BUSY)
    try:
        return float(str(stated))
    except ValueError as error:
        raise UsageError(
            "the timeout of the history database is not a number", hint="use ?timeout=30, or omit it"
        ) from error


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:  # it quotes its input, which may contain a password
        raise UsageError(
            "the address of the history database is not a database URL",
            hint="use sqlite:////path/history.db or postgresql+driver://user@host/database",
        ) from error


def _make_folder(url: URL) -> None:
    if url.database and url.database != ":memory:" and not url.database.startswith("file:"):
        with suppress(OSError):  # opening the file gives a better error
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)


def _write_ahead(connection: Any, _: object) -> None:
    """Let readers read while one writes; a file that cannot be written can still be read."""
    with suppress(Exception):
        connection.execute("PRAGMA journal_mode=WAL").close()


def make_tables(engine: Engine, metadata: MetaData) -> None:
    """Make the tables that are missing; if two processes do so at once, both succeed."""
    with translate_db_errors(engine):
        if not _missing(engine, metadata):
            return
        try:
            metadata.create_all(engine)
        except SQLAlchemyError:
            if _missing(engine, metadata):  # else another process was quicker
                raise


def _missing(engine: Engine, metadata: MetaData) -> bool:
    return not set(metadata.tables) <= set(inspect(engine).get_table_names())


@contextmanager
def translate_db_errors(engine: Engine) -> Iterator[None]:
    """Return a database's error as one line, without passwords."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        where = engine.url.render_as_string(hide_password=True).partition("?")[0]
        raise DatabaseError(
            f"{where}: {one_line(str(cause)) or type(cause).__name__}",
            hint="check that it can be reached and written; --history names another for history",
        ) from error
