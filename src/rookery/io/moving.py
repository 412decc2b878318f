"""Files deleted, or moved to another place, on a disk or in a store; never over another file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rookery.io.location import local_path, scheme_of, shown
from rookery.io.open import create_sink, open_source
from rookery.model import StorageError

_CHUNK = 8 << 20


def delete_file(location: str, properties: Mapping[str, str]) -> None:
    """Delete a file; a missing one is not an error."""
    if scheme_of(location) is not None:
        from rookery.io.remote import delete_remote  # slow to import

        delete_remote(location, properties)
        return
    with _clear(location, "deleted"):
        os.remove(local_path(location))


def move_file(source: str, target: str, properties: Mapping[str, str]) -> None:
    """Move a file to a free location; it is deleted when the copy is complete."""
    if scheme_of(target) is None:
        with _clear(target, "written"):
            os.makedirs(os.path.dirname(local_path(target)), exist_ok=True)
    if scheme_of(source) is None and scheme_of(target) is None and _renamed(source, target):
        return
    size = _copy(source, target, properties)
    with open_source(target, properties) as arrived:
        if arrived.size != size:
            raise StorageError(
                f"{shown(target)}: {arrived.size:,} of {size:,} bytes were written",
                hint="nothing was deleted",
            )
    delete_file(source, properties)


def _renamed(source: str, target: str) -> bool:
    """Whether a local file could be renamed, or is missing; not across file systems."""
    start, end = local_path(source), local_path(target)
    with _clear(source, "moved"):
        if os.path.lexists(end):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), end)
        try:
            os.rename(start, end)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return False
    return True


def _copy(source: str, target: str, properties: Mapping[str, str]) -> int:
    with open_source(source, properties) as reading, create_sink(target, properties) as sink:
        for start in range(0, reading.size, _CHUNK):
            sink.write(reading.read(start, min(_CHUNK, reading.size - start)))
        sink.commit()
        return reading.size


@contextmanager
def _clear(location: str, action: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        return  # another run has been here
    except OSError as error:
        raise StorageError(
            f"{shown(location)}: cannot be {action}: {error.strerror or error}",
            hint="check the write permissions of the folder",
        ) from error
