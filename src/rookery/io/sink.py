"""Sinks: a file appears under its final name whole, or not at all."""

from __future__ import annotations

import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from io import BytesIO
from types import TracebackType
from typing import IO, Self

from rookery.io.location import local_path
from rookery.model import StorageError


class Sink(ABC):
    """Something that bytes are appended to, then committed; leaving its `with` uncommitted drops them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append *data*."""
        try:
            self._append(data)
        except OSError as error:
            raise StorageError(
                f"{self.name}: cannot be written: {error}", hint="is the disk full?"
            ) from error
        self.position += memoryview(data).nbytes

    @abstractmethod
    def _append(self, data: bytes | bytearray | memoryview) -> None: ...

    @abstractmethod
    def commit(self) -> None:
        """Make what was written appear under the final name."""

    @abstractmethod
    def discard(self) -> None:
        """Drop what is not committed; harmless after a commit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


class BytesSink(Sink):
    """Bytes in memory, for small files and tests; `data` is there after the commit."""

    def __init__(self, name: str = "<bytes>") -> None:
        super().__init__(name)
        self._buffer = BytesIO()
        self.data: bytes | None = None

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer.write(data)

    def commit(self) -> None:
        """Publish the bytes."""
        self.data = self._buffer.getvalue()

    def discard(self) -> None:
        """Drop what was written."""
        self._buffer = BytesIO()


class LocalSink(Sink):
    """A file of this machine: written under a temporary name beside the final one, then renamed."""

    def __init__(self, path: str, *, overwrite: bool = False, durable: bool = True) -> None:
        super().__init__(path)
        self._final = local_path(path)
        self._overwrite = overwrite
        self._durable = durable
        folder, base = os.path.split(self._final)
        self._passing = os.path.join(folder, f".{base}.{uuid.uuid4().hex}.tmp")
        if not overwrite and os.path.exists(self._final):
            raise self._exists()
        try:
            self._file: IO[bytes] | None = open(self._passing, "xb")  # noqa: SIM115 (held until commit)
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be written: {error.strerror}", hint="check the folder and its permissions"
            ) from error

    def _exists(self) -> StorageError:
        return StorageError(f"{self.name}: exists already", hint="choose another name, or overwrite")

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        if self._file is None:
            raise ValueError(f"{self.name} is already committed")
        self._file.write(data)

    def commit(self) -> None:
        """Flush to the disk, then rename: a link where an existing file must not be replaced."""
        if self._file is None:
            raise ValueError(f"{self.name} is already committed")
        try:
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()
            if self._overwrite:
                os.replace(self._passing, self._final)
            else:
                os.link(self._passing, self._final)
                os.unlink(self._passing)
        except FileExistsError as error:
            raise self._exists() from error
        except OSError as error:
            raise StorageError(
                f"{self.name}: cannot be written: {error.strerror}", hint="is the disk full?"
            ) from error
        self._file = None

    def discard(self) -> None:
        """Remove the passing file."""
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses buffered bytes, which are dropped anyway
                self._file.close()
            self._file = None
            with suppress(FileNotFoundError):
                os.unlink(self._passing)


class SpooledSink(Sink):
    """The base of remote sinks: bytes are spooled to a local file, so failures leave the store unchanged."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._spool = tempfile.NamedTemporaryFile(prefix="rookery-")  # noqa: SIM115 (held until commit)

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        self._spool.write(data)

    def commit(self) -> None:
        """Send the whole file."""
        self._spool.flush()
        self._spool.seek(0)
        self._publish(self._spool)
        self._spool.close()

    def discard(self) -> None:
        """Remove the local file."""
        with suppress(OSError):
            self._spool.close()

    @abstractmethod
    def _publish(self, spool: IO[bytes]) -> None: ...
