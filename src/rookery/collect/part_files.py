"""Large parts of indexes, passed from executors to the driver in files beside the table.

Filters of many megabytes would otherwise pass through the JVMs of both. The files are read once and deleted;
those left by a killed run are deleted as garbage by a later one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from zlib_ng import zlib_ng

from rookery.io import create_sink, open_source, shown
from rookery.io.moving import delete_file
from rookery.model import MachineError, MissingFileError, Place, RookeryError
from rookery.sidecar import part_name
from rookery.sidecar.checksums import DamagedError

log = logging.getLogger(__name__)
LEAST_BYTES = 1 << 20  # less is sent through Spark

IndexRow = tuple[int, int, bytes | memoryview]
"""The place of an index among those of its group, a number of its kind's own choice, and bytes."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """Where the rows of a task's indexes are."""

    path: str
    crc: int
    rows: Sequence[tuple[int, int, int]]  # as in `IndexRow`, with the number of bytes

    def encode(self) -> bytes:
        """Return it as executors send it."""
        return json.dumps(asdict(self)).encode()


def write_part_file(
    rows: Sequence[IndexRow], folder: str, io_properties: Mapping[str, str]
) -> PartFile | None:
    """Write rows to a file of their own; None if they are few, or the folder cannot be written to."""
    if sum(len(payload) for _, _, payload in rows) < LEAST_BYTES:
        return None
    path, crc = f"{folder}/{part_name()}", 0
    try:
        with create_sink(path, io_properties, durable=False) as sink:
            for _, _, payload in rows:
                sink.write(payload)
                crc = zlib_ng.crc32(payload, crc)
            sink.commit()
    except RookeryError as error:
        log.warning("indexes are sent through Spark: %s", error)
        return None
    return PartFile(path, crc, [(number, within, len(payload)) for number, within, payload in rows])


def read_part_file(stated: bytes, io_properties: Mapping[str, str]) -> Iterator[IndexRow]:
    """Yield the rows of a file that an executor has named, and delete it."""
    file = PartFile(**json.loads(stated))
    try:
        with open_source(file.path, io_properties) as source:
            data = memoryview(source.read_all())
            place = Place(source.name)
    except MissingFileError as error:
        raise MachineError(
            f"{shown(file.path)}, which an executor has written, does not exist",
            hint="the folder beside the table must be the same one for the driver and the executors",
        ) from error
    delete_file(file.path, io_properties)
    if len(data) != sum(length for _, _, length in file.rows) or zlib_ng.crc32(data) != file.crc:
        raise DamagedError(place, "the parts of indexes that were written", "other bytes")
    at = 0
    for number, within, length in file.rows:
        yield number, within, data[at : at + length]
        at += length
