"""Metadata files as bytes, and the error if they cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.io import FileIO

from rookery.io import STORE_HINT, open_source, scheme_of, shown
from rookery.io.redaction import redact
from rookery.model import FormatError, MissingFileError, RookeryError, StorageError

GONE_HINT = "has the table been dropped, or the snapshot expired, during the run?"


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raise one clear error if a metadata file cannot be read, for all errors of its library."""
    try:
        yield
    except FormatError as error:
        error.hint = error.hint or "the file is damaged, or none of Iceberg's: does Spark read the table?"
        raise
    except MissingFileError as error:
        error.hint = GONE_HINT
        raise
    except RookeryError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{shown(path)}: no such file", hint=GONE_HINT) from error
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(
            f"{shown(path)}: cannot be read: {redact(reason, location=path)}", hint=STORE_HINT
        ) from error


def read_whole(io: FileIO, path: str) -> bytes:
    """Return all bytes of a metadata file."""
    if scheme_of(path) is not None:
        # Its settings are renewed, and its size is not requested.
        with open_source(path, io.properties) as source:
            return source.read_all()
    with io.new_input(path).open() as stream:
        return bytes(stream.read())
