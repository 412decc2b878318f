"""Sources: they read ranges of bytes, and count what they read."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from functools import cached_property
from types import TracebackType
from typing import Protocol, Self

from rookery.io.location import local_path
from rookery.model import FormatError, MissingFileError, Place, StorageError


class Source(ABC):
    """A file of which any range can be read. `reads` and `bytes_read` count its reads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reads = 0
        self.bytes_read = 0

    @cached_property
    def size(self) -> int:
        """The length in bytes; requested once."""
        return self._measure()

    def read(self, offset: int, length: int) -> bytes:
        """Read exactly *length* bytes from *offset*; a file that ends earlier is an error."""
        if offset < 0 or length < 0:
            raise FormatError(Place(self.name, offset), "a range inside the file", f"length {length}")
        if length == 0:
            return b""
        self.reads += 1
        data = self._fetch(offset, length)
        self.bytes_read += len(data)
        if len(data) != length:
            raise FormatError(
                Place(self.name, offset), f"{length} bytes", f"{len(data)}: the file ends early"
            )
        return data

    def read_all(self) -> bytes:
        """Read the whole file; if its size is not known yet, it is not requested first."""
        self.reads += 1
        data = self._fetch_all()
        self.bytes_read += len(data)
        return data

    def close(self) -> None:  # noqa: B027 (most sources hold nothing open)
        """Close what the source has open."""

    @abstractmethod
    def _measure(self) -> int: ...

    @abstractmethod
    def _fetch(self, offset: int, length: int) -> bytes: ...

    def _fetch_all(self) -> bytes:
        return self._fetch(0, self.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BytesSource(Source):
    """Bytes in memory."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "<bytes>") -> None:
        super().__init__(name)
        self._data = memoryview(data).cast("B")

    def _measure(self) -> int:
        return len(self._data)

    def _fetch(self, offset: int, length: int) -> bytes:
        return bytes(self._data[offset : offset + length])


class LocalSource(Source):
    """A file of this machine, read with `pread`."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            self._file = os.open(local_path(path), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise MissingFileError(f"{path}: {error.strerror}", hint="check the path") from error
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link that leads nowhere
                raise MissingFileError(f"{path}: {error.strerror}", hint="check the path") from error
            raise StorageError(f"{path}: {error.strerror}", hint="check its read permissions") from error

    def _measure(self) -> int:
        return os.fstat(self._file).st_size

    def _fetch(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._file, length, offset)
            while 0 < len(data) < length and (
                more := os.pread(self._file, length - len(data), offset + len(data))
            ):
                data += more
        except (OSError, OverflowError) as error:
            raise StorageError(f"{self.name}: cannot be read: {error}", hint="is it a file?") from error
        return data

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            self.close()


class InputStream(Protocol):
    """The result of PyIceberg's `InputFile.open()`."""

    def read(self, size: int = 0) -> bytes: ...  # noqa: D102

    def seek(self, offset: int, whence: int = 0) -> int: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class InputFile(Protocol):
    """The part of PyIceberg's `InputFile` that is needed here."""

    @property
    def location(self) -> str: ...  # noqa: D102

    def __len__(self) -> int: ...

    def open(self, seekable: bool = True) -> InputStream: ...  # noqa: D102
