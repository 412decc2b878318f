"""A source as a file object, for libraries that want one."""

from __future__ import annotations

import io

from rookery.io.source import Source


class SourceFile(io.RawIOBase):
    """Reads of the file are range reads of the source, and counted there."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Whether it can be moved in: yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Read *size* bytes, or all that are left."""
        left = max(self._source.size - self._position, 0)
        data = self._source.read(self._position, left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
